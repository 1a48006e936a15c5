"""The compiled loop of the simulator: messages arrive in order at first-come, first-served queues.

Each worker serves messages in order, so the finish time of a message is known at its arrival and
no queue of messages is kept. The loop keeps only the acknowledgments that carry a signal: the
first acknowledgment of each slot from each worker to each source.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._compiled import compiled
from steelyard.schemes.choices import mix64

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

LATENCY_BINS = 1600
"""The number of latency bins: 32 for each doubling from 2^-20 s (a microsecond) to 2^30 s."""

_LOWEST_LATENCY = 2.0**-20
_FIRST_BIN = (1023 - 20) << 5


class Arrivals(NamedTuple):
    """The messages of one slot, in the order of their arrival."""

    first_message: int
    """The number of the first message in the whole stream."""
    keys: NDArray[np.uint32]
    times: Floats
    bins: NDArray[np.int32]
    """The bin of each message; `advance` replaces it with the worker when the message arrives."""


class SlotBounds(NamedTuple):
    """One slot: its start, its end, its length, and the length of a tick, in seconds."""

    begin: float
    end: float
    length: float
    tick: float


class SpeedTable(NamedTuple):
    """The speeds of the workers over time."""

    begins: Floats
    """The ascending times from which each row applies; the first is 0."""
    service_times: Floats
    """The seconds for a unit of work, by row and worker."""


class WorkTable(NamedTuple):
    """The work of each message, in units."""

    by_key: Floats
    """The work by key; empty if work does not depend on the key."""
    is_random: bool
    seed: np.uint64


class WorkerClocks(NamedTuple):
    """The time at which each worker becomes free, and its idle and busy time in the slot."""

    free_at: Floats
    """The time at which a worker finishes all messages in its queue."""
    era: Counts
    """The row of the speed table at `free_at`."""
    tick: Counts
    """The tick that contains `free_at`; a message that finishes at the end of a tick is in it."""
    tick_end: Floats
    idle: Floats
    """The seconds without work in this slot so far."""
    work_seconds: Floats
    """The total service time of this slot's arrivals in seconds."""

    @classmethod
    def start(cls, workers: int, tick: float) -> Self:
        """Return the clocks of workers at the start of a simulation."""
        return cls(
            free_at=np.zeros(workers),
            era=np.zeros(workers, np.int64),
            tick=np.zeros(workers, np.int64),
            tick_end=np.full(workers, float(tick)),
            idle=np.zeros(workers),
            work_seconds=np.zeros(workers),
        )


class Tally(NamedTuple):
    """The counts of a simulation by tick and worker; the last row is for after the end."""

    arrivals: Counts
    finishes: Counts
    """The number of messages that finished."""
    latency: Floats
    """The sum of the latencies, in seconds, of the messages that finished in the tick."""
    new_keys: Counts
    """The number of keys that a worker got for the first time in the tick."""
    latencies: NDArray[np.int32]
    """The number of messages by tick and latency bin."""
    held: NDArray[np.unsignedinteger]
    """A bit for each key and worker: whether the worker has held the key."""
    fresh: NDArray[np.unsignedinteger]
    """The same bits since the last periodic aggregation; empty without periodic aggregation."""
    partials: Counts
    """The number of partial states of each worker since the last periodic aggregation."""

    @classmethod
    def empty(cls, ticks: int, workers: int, keys: int, *, aggregated: bool) -> Self:
        """Return counts that are all zero.

        Args:
            ticks: The number of ticks.
            workers: The number of workers.
            keys: The number of keys.
            aggregated: Whether there is periodic aggregation.
        """
        words = (workers + 63) // 64
        bits = np.uint16 if workers <= 16 else np.uint64  # 16 bits mean fewer memory accesses
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


class Acknowledgments(NamedTuple):
    """A heap of the acknowledgments that carry signals, the earliest first.

    A pair is a worker and a source, as the number worker * sources + source. All arrays by pair
    are empty without delegation.
    """

    times: Floats
    """The time of each acknowledgment in the heap."""
    pairs: Counts
    """The pair of each acknowledgment in the heap."""
    size: Counts
    """The size of the heap, and the number of entries in `due`."""
    due: Counts
    """The pairs whose acknowledgments have arrived, in order; the simulation delivers them."""
    next_signal: Floats
    """For each pair the end of the slot after which its next acknowledgment carries a signal.

    Events at the same time have an order: messages finish, then a slot ends, then messages arrive.
    """
    may_move: NDArray[np.bool_]
    """For each worker whether its acknowledgments may move a virtual worker in this slot."""

    @classmethod
    def empty(cls, workers: int, sources: int, slot: float) -> Self:
        """Return an empty heap for `sources` sources; 0 sources mean no delegation."""
        pairs = workers * sources
        return cls(
            times=np.zeros(4 * pairs),
            pairs=np.zeros(4 * pairs, np.int64),
            size=np.zeros(2, np.int64),
            due=np.zeros(max(1, pairs), np.int64),  # a pair usually has one signal per slot
            next_signal=np.full(pairs, float(slot)),  # no report before the end of the first slot
            may_move=np.zeros(workers, np.bool_),
        )

    def with_room(self) -> Self:
        """Return the same acknowledgments, with twice the capacity if the heap is full."""
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
    """Remove the earliest acknowledgment from the heap and return its pair."""
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
    """Return the time at which work that starts at `start` ends, with all changes of speed."""
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
    """Return the latency bin: the leading bits of the number give its octave and a 32nd of it."""
    if seconds < _LOWEST_LATENCY:
        return 0
    leading = (np.float64(seconds).view(np.int64) >> 47) - _FIRST_BIN
    return min(leading, LATENCY_BINS - 1)


def latency_of_bin(number: NDArray[np.integer]) -> Floats:
    """Return the middle of a latency bin in seconds."""
    octave, part = np.divmod(np.asarray(number, np.float64), 32)
    middle: Floats = 2.0 ** (octave - 20) * (1 + (part + 0.5) / 32)
    return middle


@compiled
def exponential_work(seed: Any, message: Any) -> Any:
    """Return the work of a message, exponentially distributed with mean 1."""
    bits = mix64(seed + np.uint64(message) * np.uint64(0x9E3779B97F4A7C15))
    return -np.log(np.float64((bits >> np.uint64(11)) + np.uint64(1)) * 2.0**-53)


@compiled
def _advance_tick(workers: Any, w: Any, now: Any, end: Any, tick: Any, after_end: Any) -> None:
    """Advance a worker's tick to the one in which its newest message finishes."""
    last = workers.tick[w]
    while last < after_end and (end > (last + 1) * tick or now >= (last + 1) * tick):
        last += 1
    workers.tick[w] = last
    workers.tick_end[w] = (last + 1) * tick if last < after_end else np.inf


@compiled
def _new_holdings(keys: Any, chosen: Any, held: Any, new: Any) -> None:
    """Record that the chosen workers hold the keys, and count the new keys of each worker."""
    # The loop has no branch and does nothing else, so the processor fetches many keys at a time.
    for i in range(keys.size):
        w = np.uintp(chosen[i])
        word, bit = w >> np.uintp(6), np.uint64(1) << np.uint64(w & np.uintp(63))
        before = np.uint64(held[keys[i], word])
        held[keys[i], word] = before | bit
        new[w] += np.int64(before & bit == 0)


@compiled
def _count_arrivals(keys: Any, times: Any, chosen: Any, tick: Any, row: Any, tally: Any) -> None:
    """Count the arrivals and the new keys of each worker, tick by tick."""
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
    """Move arrived acknowledgments to `due`, up to the first that may move a virtual worker.

    Return True if there is such an acknowledgment or `due` is full: the simulation must then
    deliver them before the next message arrives.
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
    """Let messages arrive from `position` on; return the new position and if the slot is over.

    The loop stops at an acknowledgment that may move a virtual worker, and when the heap is full.
    It replaces the bins of messages that arrived with their workers.

    Args:
        position: The position of the next message in `arrivals`.
        arrivals: The messages of the slot.
        owners: The worker of each bin, by source.
        slot: The bounds of the slot.
        speeds: The speeds of the workers.
        work_table: The work of the messages.
        workers: The clocks of the workers, which the function updates.
        tally: The counts, which the function updates.
        acks: The acknowledgments, which the function updates.
    """
    keys, times, bins = arrivals.keys, arrivals.times, arrivals.bins
    first_message = arrivals.first_message
    sources = owners.shape[0]
    after_end = tally.arrivals.shape[0] - 1
    delegates = acks.next_signal.size > 0
    source = (first_message + position) % sources
    stopped = times.size
    for i in range(position, times.size):
        now = times[i]
        if delegates:
            is_due = acks.size[0] > 0 and acks.times[0] <= now
            if (is_due and _collect(acks, now, sources)) or acks.size[0] == acks.times.size:
                stopped = i
                break
        # Unsigned indices avoid the check for negative ones.
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
            _advance_tick(workers, w, now, end, slot.tick, after_end)
        row = np.uintp(workers.tick[w])
        tally.finishes[row, w] += 1
        tally.latency[row, w] += end - now
        tally.latencies[row, _latency_bin(end - now)] += 1

        if delegates:
            pair = np.int64(w) * sources + source
            if end > acks.next_signal[pair]:
                acks.next_signal[pair] = np.ceil(end / slot.length) * slot.length
                _push(acks, end, pair)
        source += 1
        if source == sources:
            source = 0
    done = slice(position, stopped)
    first_row = np.int64(slot.begin / slot.tick + 0.5)
    _count_arrivals(keys[done], times[done], bins[done], slot.tick, first_row, tally)
    is_over = stopped == times.size
    if is_over and delegates:
        is_over = not _collect(acks, slot.end, sources)
    return stopped, is_over
