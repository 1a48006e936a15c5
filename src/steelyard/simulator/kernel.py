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
    """What the workers are doing; all but the first two begin anew with each slot."""

    free_at: Floats
    """When a worker will have finished all that it has."""
    era: Counts
    """The row of the timetable of speeds that `free_at` falls into."""
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
def pop_due(acks: Any, until: Any) -> Any:
    """Take the earliest acknowledgement out of the heap if it is due; its pair, or -1."""
    if acks.size[0] == 0 or acks.times[0] > until:
        return -1
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
def _count(tally: Any, tick: Any, end_tick: Any, w: Any, key: Any, latency: Any) -> None:
    tally.arrivals[tick, w] += 1
    tally.finishes[end_tick, w] += 1
    tally.latency[end_tick, w] += latency
    tally.latencies[end_tick, _latency_bin(latency)] += 1
    word, bit = w >> np.uintp(6), np.uint64(1) << np.uint64(w & np.uintp(63))
    # No branch: nobody has to wait for the memory to know how to go on.
    held = np.uint64(tally.held[key, word])
    tally.held[key, word] = held | bit
    tally.new_keys[tick, w] += np.int64(held & bit == 0)
    if tally.fresh.size > 0 and tally.fresh[key, word] & bit == 0:
        tally.fresh[key, word] |= bit
        tally.partials[w] += 1


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
    tick: Any,
    key_work: Any,
    random_work: Any,
    seed: Any,
    workers: Any,
    tally: Any,
    acks: Any,
) -> Any:
    """Let messages arrive from `position` on; return where it stopped.

    It stops for an acknowledgement that is due, and for want of room in the heap.
    """
    sources = owners.shape[0]
    after_end = tally.arrivals.shape[0] - 1
    listening = acks.news_from.size > 0
    source = (first_message + position) % sources
    this_tick = np.int64(slot_start / tick + 0.5)
    tick_end = (this_tick + 1) * tick
    for i in range(position, times.size):
        now = times[i]
        if listening:
            is_due = acks.size[0] > 0 and acks.times[0] <= now
            if is_due or acks.size[0] == acks.times.size:
                return i
        # Unsigned numbers: no check whether they count from the end.
        w = np.uintp(owners[source, np.uintp(bins[i])])
        key = keys[i]

        work = 1.0
        if key_work.size > 0:
            work = key_work[key]
        if random_work:
            work = exponential_work(seed, first_message + i)
        start = workers.free_at[w]
        if start < now:
            workers.idle[w] += now - max(start, slot_start)
            start = now
        end = _finish(workers, w, start, work, begins, paces)
        workers.free_at[w] = end
        workers.work_seconds[w] += end - start

        while now >= tick_end and this_tick < after_end:
            this_tick += 1
            tick_end = (this_tick + 1) * tick
        end_tick = this_tick
        if end > tick_end:  # what finishes at the very end of a tick is not queued there
            end_tick = min(np.int64(np.ceil(end / tick)) - 1, after_end)
        _count(tally, np.uintp(this_tick), np.uintp(end_tick), w, key, end - now)

        if listening:
            pair = np.int64(w) * sources + source
            if end > acks.news_from[pair]:
                acks.news_from[pair] = np.ceil(end / slot) * slot
                _push(acks, end, pair)
        source += 1
        if source == sources:
            source = 0
    return times.size
