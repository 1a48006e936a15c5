"""The compiled heart: messages in the order of arrival, first come first served at each worker.

Because each worker serves in order, the moment a message finishes is known when it arrives; no
queue of messages has to be kept. What is kept are the acknowledgements that will bring news to a
source: the first of each slot from each worker to each source.
"""

from typing import Any, NamedTuple, Self

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


class Arrivals(NamedTuple):
    """The messages of one slot, in the order of their arrival."""

    first_message: int
    """The number of the first one in the whole stream."""
    keys: NDArray[np.uint32]
    times: Floats
    bins: NDArray[np.int32]
    """Where routers sent them; the bins of messages that arrived become their workers."""


class SlotBounds(NamedTuple):
    """One slot of the simulation, in seconds."""

    begin: float
    end: float
    length: float
    tick: float


class SpeedTable(NamedTuple):
    """The speeds of the workers over time."""

    begins: Floats
    """When each row begins to hold, rising from 0."""
    service_times: Floats
    """Seconds for a unit of work, by row and worker."""


class WorkTable(NamedTuple):
    """The work of each message, in units."""

    by_key: Floats
    """Empty where work does not depend on the key."""
    is_random: bool
    seed: np.uint64


class WorkerClocks(NamedTuple):
    """Until when each worker has work, and how it spent the slot."""

    free_at: Floats
    """When a worker will have finished all that it has."""
    era: Counts
    """The row of the table of speeds that `free_at` falls into."""
    tick: Counts
    """The tick that `free_at` falls into; what ends with a tick is not queued after it."""
    tick_end: Floats
    idle: Floats
    """Seconds without work in this slot, so far."""
    work_seconds: Floats
    """Seconds that this slot's arrivals will take."""

    @classmethod
    def start(cls, workers: int, tick: float) -> Self:
        """Workers that have done nothing yet."""
        return cls(
            free_at=np.zeros(workers),
            era=np.zeros(workers, np.int64),
            tick=np.zeros(workers, np.int64),
            tick_end=np.full(workers, float(tick)),
            idle=np.zeros(workers),
            work_seconds=np.zeros(workers),
        )


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
    fresh: NDArray[np.unsignedinteger]
    """The same since the last periodic aggregation; empty if there is none."""
    partials: Counts
    """Partial states since the last aggregation, by worker."""

    @classmethod
    def empty(cls, ticks: int, workers: int, keys: int, *, aggregated: bool) -> Self:
        """Nothing is counted yet."""
        words = (workers + 63) // 64
        bits = np.uint16 if workers <= 16 else np.uint64  # less to fetch from memory
        return cls(
            arrivals=np.zeros((ticks + 1, workers), np.int64),
            finishes=np.zeros((ticks + 1, workers), np.int64),
            latency=np.zeros((ticks + 1, workers)),
            new_keys=np.zeros((ticks + 1, workers), np.int64),
            latencies=np.zeros((ticks + 1, LATENCY_BINS), np.int32),
            held=np.zeros((keys, words), bits),
            fresh=np.zeros((keys if aggregated else 0, words), bits),
            partials=np.zeros(workers, np.int64),
        )


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
    may_move: NDArray[np.bool_]
    """By worker: an acknowledgement of it may move a virtual worker in this slot."""

    @classmethod
    def empty(cls, workers: int, listeners: int, slot: float) -> Self:
        """None is on its way; `listeners` sources wait for those of every worker."""
        pairs = workers * listeners
        return cls(
            times=np.zeros(4 * pairs),
            pairs=np.zeros(4 * pairs, np.int64),
            size=np.zeros(2, np.int64),
            due=np.zeros(max(1, pairs), np.int64),  # a pair brings news once a slot, as a rule
            news_from=np.full(pairs, float(slot)),  # there is no report before the first slot's end
            may_move=np.zeros(workers, np.bool_),
        )

    def with_room(self) -> Self:
        """The same, with a longer heap where this one is full."""
        if not self.times.size or self.size[0] < self.times.size:
            return self
        longer = 2 * self.times.size
        return self._replace(
            times=np.resize(self.times, longer), pairs=np.resize(self.pairs, longer)
        )


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
def _finish(workers: Any, w: Any, start: Any, work: Any, speeds: Any) -> Any:
    """When work that starts at a time ends, through all changes of speed on the way."""
    begins, service_times = speeds.begins, speeds.service_times
    if begins.size == 1:
        return start + work * service_times[0, w]
    era = workers.era[w]
    while era + 1 < begins.size and begins[era + 1] <= start:
        era += 1
    end = start + work * service_times[era, w]
    while era + 1 < begins.size and end > begins[era + 1]:
        work -= (begins[era + 1] - start) / service_times[era, w]
        start = begins[era + 1]
        era += 1
        end = start + work * service_times[era, w]
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
def _collect(acks: Any, until: Any, sources: Any) -> Any:
    """Move what is due from the heap to `due`, up to the first that may move a virtual worker.

    True if there is such a one, or no more room: the simulation must hand them over before
    anything else arrives.
    """
    while acks.size[0] > 0 and acks.times[0] <= until:
        pair = _pop(acks)
        acks.due[acks.size[1]] = pair
        acks.size[1] += 1
        if acks.may_move[pair // sources] or acks.size[1] == acks.due.size:
            return True
    return False


@compiled
def advance(
    position: Any,
    arrivals: Any,
    owners: Any,
    slot: Any,
    speeds: Any,
    work_table: Any,
    workers: Any,
    tally: Any,
    acks: Any,
) -> Any:
    """Let messages arrive from `position` on; tell where it stopped and whether the slot is over.

    It stops for an acknowledgement that may move a virtual worker, and for want of room in the
    heap. The bins of messages that arrived are replaced by their workers.
    """
    keys, times, bins = arrivals.keys, arrivals.times, arrivals.bins
    first_message = arrivals.first_message
    sources = owners.shape[0]
    after_end = tally.arrivals.shape[0] - 1
    listening = acks.news_from.size > 0
    source = (first_message + position) % sources
    stopped = times.size
    for i in range(position, times.size):
        now = times[i]
        if listening:
            is_due = acks.size[0] > 0 and acks.times[0] <= now
            if (is_due and _collect(acks, now, sources)) or acks.size[0] == acks.times.size:
                stopped = i
                break
        # Unsigned numbers: no check whether they count from the end.
        w = np.uintp(owners[source, np.uintp(bins[i])])
        bins[i] = w

        work = 1.0
        if work_table.by_key.size > 0:
            work = work_table.by_key[keys[i]]
        if work_table.is_random:
            work = exponential_work(work_table.seed, first_message + i)
        start = workers.free_at[w]
        workers.idle[w] += max(0.0, now - max(start, slot.begin))
        start = max(start, now)
        end = _finish(workers, w, start, work, speeds)
        workers.free_at[w] = end
        workers.work_seconds[w] += end - start

        if end > workers.tick_end[w] or now >= workers.tick_end[w]:
            _turn_over(workers, w, now, end, slot.tick, after_end)
        row = np.uintp(workers.tick[w])
        tally.finishes[row, w] += 1
        tally.latency[row, w] += end - now
        tally.latencies[row, _latency_bin(end - now)] += 1

        if listening:
            pair = np.int64(w) * sources + source
            if end > acks.news_from[pair]:
                acks.news_from[pair] = np.ceil(end / slot.length) * slot.length
                _push(acks, end, pair)
        source += 1
        if source == sources:
            source = 0
    done = slice(position, stopped)
    first_row = np.int64(slot.begin / slot.tick + 0.5)
    _remember(keys[done], times[done], bins[done], slot.tick, first_row, tally)
    is_over = stopped == times.size
    if is_over and listening:
        is_over = not _collect(acks, slot.end, sources)
    return stopped, is_over
