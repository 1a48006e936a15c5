"""The compiled heart: messages in the order of arrival, first come first served at each worker.

Because each worker serves in order, the moment a message finishes is known when it arrives; no
queue of messages has to be kept. What is kept are the acknowledgements that will bring news to a
source: the first of each slot from each worker to each source.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._compiled import compiled
from steelyard.schemes.choices import mix64

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

LATENCY_BINS = 1600
"""32 for each doubling from 2^-20 seconds (a microsecond) to 2^30."""

_LOWEST_LATENCY = 2.0**-20
_FIRST_BIN = (1023 - 20) << 5


class Workers(NamedTuple):
    """What the workers are doing."""

    free_at: Floats
    """When a worker will have finished all that it has."""
    era: Counts
    """The row of the timetable of speeds that `free_at` falls into."""
    tick: Counts
    """The tick that `free_at` falls into; what ends with a tick is not queued after it."""
    tick_end: Floats
    idle: Floats
    """Seconds without work in this slot, so far."""
    work_seconds: Floats
    """Seconds that this slot's arrivals will take."""


class Tally(NamedTuple):
    """What is counted: by tick (the last row is for after the end) and by worker."""

    arrivals: Counts
    finishes: Counts
    latency: Floats
    """Seconds, summed over the messages that finished in the tick."""
    new_keys: Counts
    latencies: NDArray[np.int32]
    """By tick and latency bin."""
    held: NDArray[np.unsignedinteger]
    """A bit for each key and worker: it has held this key; 16 bits each for few workers."""
    fresh: NDArray[np.uint64]
    """The same since the last periodic aggregation; empty if there is none."""
    partials: Counts
    """Partial states since the last aggregation, by worker."""


class Acknowledgements(NamedTuple):
    """A heap of those that will bring news, the earliest first; empty arrays if nobody listens."""

    times: Floats
    pairs: Counts
    """worker * sources + source."""
    size: Counts
    """Of the heap, and of `due`."""
    due: Counts
    """Pairs whose acknowledgements have arrived, in order; the simulation hands them over."""
    news_from: Floats
    """For each pair the time after which an acknowledgement brings news: the end of a slot.

    At one and the same time messages finish first, then a slot ends, then messages arrive.
    """


@compiled
def _push(acks: Any, time: Any, pair: Any) -> None:
    at = acks.size[0]
    acks.size[0] += 1
    while at > 0:
        parent = (at - 1) >> 1
        if acks.times[parent] < time or (acks.times[parent] == time and acks.pairs[parent] < pair):
            break
        acks.times[at] = acks.times[parent]
        acks.pairs[at] = acks.pairs[parent]
        at = parent
    acks.times[at] = time
    acks.pairs[at] = pair


@compiled
def _pop(acks: Any) -> Any:
    """Take the earliest acknowledgement out of the heap; its pair."""
    first = acks.pairs[0]
    acks.size[0] -= 1
    size = acks.size[0]
    time, pair = acks.times[size], acks.pairs[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        right = child + 1
        if right < size and (
            acks.times[right] < acks.times[child]
            or (acks.times[right] == acks.times[child] and acks.pairs[right] < acks.pairs[child])
        ):
            child = right
        if time < acks.times[child] or (time == acks.times[child] and pair < acks.pairs[child]):
            break
        acks.times[at] = acks.times[child]
        acks.pairs[at] = acks.pairs[child]
        at = child
    acks.times[at] = time
    acks.pairs[at] = pair
    return first


@compiled
def _finish(workers: Any, w: Any, start: Any, work: Any, begins: Any, paces: Any) -> Any:
    """When work that starts at a time ends, through all changes of speed on the way."""
    if begins.size == 1:
        return start + work * paces[0, w]
    era = workers.era[w]
    while era + 1 < begins.size and begins[era + 1] <= start:
        era += 1
    end = start + work * paces[era, w]
    while era + 1 < begins.size and end > begins[era + 1]:
        work -= (begins[era + 1] - start) / paces[era, w]
        start = begins[era + 1]
        era += 1
        end = start + work * paces[era, w]
    workers.era[w] = era
    return end


@compiled
def _latency_bin(seconds: Any) -> Any:
    """The leading bits of the number: its octave and a 32nd of it."""
    if seconds < _LOWEST_LATENCY:
        return 0
    leading = (np.float64(seconds).view(np.int64) >> 47) - _FIRST_BIN
    return min(leading, LATENCY_BINS - 1)


def latency_of_bin(number: NDArray[np.integer]) -> Floats:
    """The middle of a latency bin, in seconds."""
    octave, part = np.divmod(np.asarray(number, np.float64), 32)
    middle: Floats = 2.0 ** (octave - 20) * (1 + (part + 0.5) / 32)
    return middle


@compiled
def exponential_work(seed: Any, message: Any) -> Any:
    """The work of a message, exponentially distributed with mean 1."""
    bits = mix64(seed + np.uint64(message) * np.uint64(0x9E3779B97F4A7C15))
    return -np.log(np.float64((bits >> np.uint64(11)) + np.uint64(1)) * 2.0**-53)


@compiled
def _turn_over(workers: Any, w: Any, now: Any, end: Any, tick: Any, after_end: Any) -> None:
    """Find the tick in which a worker's newest message ends; it never goes back."""
    last = workers.tick[w]
    while last < after_end and (end > (last + 1) * tick or now >= (last + 1) * tick):
        last += 1
    workers.tick[w] = last
    workers.tick_end[w] = (last + 1) * tick if last < after_end else np.inf


@compiled
def _new_holdings(keys: Any, chosen: Any, held: Any, new: Any) -> None:
    """Note which worker holds which key; add those that are new to the counts by worker.

    A loop of its own and without a branch, so that many keys are fetched from memory at a time.
    """
    for i in range(keys.size):
        w = np.uintp(chosen[i])
        word, bit = w >> np.uintp(6), np.uint64(1) << np.uint64(w & np.uintp(63))
        before = np.uint64(held[keys[i], word])
        held[keys[i], word] = before | bit
        new[w] += np.int64(before & bit == 0)


@compiled
def _remember(keys: Any, times: Any, chosen: Any, tick: Any, row: Any, tally: Any) -> None:
    """Count, tick by tick, arrivals and the keys that workers have not held before."""
    begin = 0
    while begin < keys.size:
        end = keys.size
        if times[-1] >= (row + 1) * tick:
            end = np.searchsorted(times, (row + 1) * tick)
        arrivals = tally.arrivals[row]
        for w in chosen[begin:end]:
            arrivals[np.uintp(w)] += 1
        _new_holdings(keys[begin:end], chosen[begin:end], tally.held, tally.new_keys[row])
        begin, row = end, row + 1
    if tally.fresh.size > 0:
        _new_holdings(keys, chosen, tally.fresh, tally.partials)


@compiled
def _collect(acks: Any, until: Any, stirs: Any, sources: Any) -> Any:
    """Move what is due from the heap to `due`, up to the first that may move a virtual worker.

    True if there is such a one, or no more room: the simulation must hand them over before
    anything else arrives.
    """
    while acks.size[0] > 0 and acks.times[0] <= until:
        pair = _pop(acks)
        acks.due[acks.size[1]] = pair
        acks.size[1] += 1
        if stirs[pair // sources] or acks.size[1] == acks.due.size:
            return True
    return False


@compiled
def advance(
    position: Any,
    first_message: Any,
    keys: Any,
    times: Any,
    bins: Any,
    owners: Any,
    begins: Any,
    paces: Any,
    slot: Any,
    slot_start: Any,
    slot_end: Any,
    tick: Any,
    key_work: Any,
    random_work: Any,
    seed: Any,
    stirs: Any,
    workers: Any,
    tally: Any,
    acks: Any,
) -> Any:
    """Let messages arrive from `position` on; tell where it stopped and whether the slot is over.

    It stops for an acknowledgement that may move a virtual worker, and for want of room in the
    heap. The bins of messages that arrived are replaced by their workers.
    """
    sources = owners.shape[0]
    after_end = tally.arrivals.shape[0] - 1
    listening = acks.news_from.size > 0
    source = (first_message + position) % sources
    stopped = times.size
    for i in range(position, times.size):
        now = times[i]
        if listening:
            is_due = acks.size[0] > 0 and acks.times[0] <= now
            if (is_due and _collect(acks, now, stirs, sources)) or acks.size[0] == acks.times.size:
                stopped = i
                break
        # Unsigned numbers: no check whether they count from the end.
        w = np.uintp(owners[source, np.uintp(bins[i])])
        bins[i] = w

        work = 1.0
        if key_work.size > 0:
            work = key_work[keys[i]]
        if random_work:
            work = exponential_work(seed, first_message + i)
        start = workers.free_at[w]
        workers.idle[w] += max(0.0, now - max(start, slot_start))
        start = max(start, now)
        end = _finish(workers, w, start, work, begins, paces)
        workers.free_at[w] = end
        workers.work_seconds[w] += end - start

        if end > workers.tick_end[w] or now >= workers.tick_end[w]:
            _turn_over(workers, w, now, end, tick, after_end)
        row = np.uintp(workers.tick[w])
        tally.finishes[row, w] += 1
        tally.latency[row, w] += end - now
        tally.latencies[row, _latency_bin(end - now)] += 1

        if listening:
            pair = np.int64(w) * sources + source
            if end > acks.news_from[pair]:
                acks.news_from[pair] = np.ceil(end / slot) * slot
                _push(acks, end, pair)
        source += 1
        if source == sources:
            source = 0
    done = slice(position, stopped)
    first_row = np.int64(slot_start / tick + 0.5)
    _remember(keys[done], times[done], bins[done], tick, first_row, tally)
    is_over = stopped == times.size
    if is_over and listening:
        is_over = not _collect(acks, slot_end, stirs, sources)
    return stopped, is_over
