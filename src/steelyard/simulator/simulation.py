"""Run a stream through sources, workers and a delegation, and tell what happened."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.datasets.stream import Stream
from steelyard.delegation import Measurement, Report, Signal, fair_busy_time
from steelyard.hashing import Hashes, hash_keys
from steelyard.simulator import kernel
from steelyard.simulator.cluster import Cluster, Floats
from steelyard.simulator.grouping import ConsistentGrouping, Grouping
from steelyard.simulator.outcome import Outcome
from steelyard.simulator.service import Deterministic, Exponential, PerKey, Service
from steelyard.simulator.sources import Sources
from steelyard.validation import require_between, require_whole

_STATES = {Signal.IDLE: -1, Signal.NORMAL: 0, Signal.BUSY: 1}


def simulate(
    stream: Stream,
    cluster: Cluster,
    grouping: Grouping,
    *,
    sources: int = 1,
    slot: float = 60.0,
    tick: float = 60.0,
    period: float | None = None,
    quiet: float = 0.0,
    service: Service | None = None,
    overload: bool = False,
    seed: int = 0,
) -> Outcome:
    """Simulate every message of a stream on a cluster.

    Workers report at the end of every `slot` seconds, but not in the first `quiet` seconds. What
    is counted is counted by `tick` seconds; a slot must be a whole number of ticks. With a
    `period`, a whole number of slots, partial states are merged and forgotten that often. A stream
    that brings more work than the whole cluster can do is refused unless `overload` is said.

    >>> from steelyard.schemes import KeyGrouping, Shuffle
    >>> from steelyard.simulator import ArrayStream, Cluster, Direct
    >>> stream = ArrayStream.at_rate(np.zeros(1200), rate=10)
    >>> twelve_a_second = Cluster.machines(2, total=12)
    >>> balanced = simulate(stream, twelve_a_second, Direct(Shuffle()))
    >>> hot = simulate(stream, twelve_a_second, Direct(KeyGrouping()))
    >>> balanced.queue_length[-1].tolist()
    [0, 1]
    >>> int(hot.queue_length[-1].max())
    481
    """
    if not overload:
        _refuse_overload(stream, cluster, service or Deterministic())
    return _Simulation(
        stream, cluster, grouping, sources, slot, tick, period, quiet, service, seed
    ).run()


class _Simulation:
    def __init__(
        self,
        stream: Stream,
        cluster: Cluster,
        grouping: Grouping,
        sources: int,
        slot: float,
        tick: float,
        period: float | None,
        quiet: float,
        service: Service | None,
        seed: int,
    ) -> None:
        require_whole("sources", sources, least=1)
        require_between("slot", slot, above=0)
        require_between("tick", tick, above=0)
        require_between("quiet", quiet, least=0)
        self.ticks_per_slot = _whole_ratio("slot", slot, "tick", tick)
        self.slots_per_period = 0
        if period is not None:
            self.slots_per_period = _whole_ratio("period", period, "slot", slot)
        self.stream, self.cluster, self.slot, self.tick = stream, cluster, slot, tick
        self.quiet = quiet
        self.sources = Sources(grouping, sources, cluster.workers, seed)
        self.rules = grouping.rules if isinstance(grouping, ConsistentGrouping) else None
        self.compare_above = getattr(grouping, "compare_above", None)
        self.sides = [self.rules.worker(slot) for _ in range(cluster.workers)] if self.rules else []
        self.reports: list[Report | None] = [None] * cluster.workers
        self.stirs = np.zeros(cluster.workers, np.bool_)
        """Whose acknowledgements may move a virtual worker in this slot."""
        self.begins, self.speeds = _timetable(stream, cluster)
        self.paces = 1 / self.speeds
        if isinstance(service, PerKey):
            service.require_fit(stream.keys)
        self.key_work = service.work if isinstance(service, PerKey) else np.empty(0)
        self.random_work = isinstance(service, Exponential)
        self.work_seed = np.uint64(service.seed if isinstance(service, Exponential) else 0)
        workers, pairs = cluster.workers, cluster.workers * sources if self.rules else 0
        self.workers = kernel.Workers(
            free_at=np.zeros(workers),
            era=np.zeros(workers, np.int64),
            tick=np.zeros(workers, np.int64),
            tick_end=np.full(workers, tick),
            idle=np.zeros(workers),
            work_seconds=np.zeros(workers),
        )
        end = stream.time_of(stream.messages - 1) if stream.messages else 0.0
        self.slots = _slots_until(end, slot)
        self.end = end
        ticks = self.slots * self.ticks_per_slot
        words = (workers + 63) // 64
        bits = np.uint16 if workers <= 16 else np.uint64  # less to fetch from memory
        self.tally = kernel.Tally(
            np.zeros((ticks + 1, workers), np.int64),
            np.zeros((ticks + 1, workers), np.int64),
            np.zeros((ticks + 1, workers)),
            np.zeros((ticks + 1, workers), np.int64),
            np.zeros((ticks + 1, kernel.LATENCY_BINS), np.int32),
            np.zeros((stream.keys, words), bits),
            np.zeros((stream.keys if period else 0, words), bits),
            np.zeros(workers, np.int64),
        )
        self.acks = kernel.Acknowledgements(
            times=np.zeros(4 * pairs),
            pairs=np.zeros(4 * pairs, np.int64),
            size=np.zeros(2, np.int64),
            due=np.zeros(max(1, pairs), np.int64),  # a pair brings news once a slot, as a rule
            news_from=np.full(pairs, slot),  # there is no report before the first slot's end
        )
        self.moves = np.zeros(self.slots, np.int64)
        self.signals = np.zeros(self.slots, np.int64)
        self.owned = np.zeros((self.slots, workers))
        self.states = np.zeros((self.slots if self.rules else 0, workers), np.int8)
        self.first_moves: list[tuple[int, int, int, int]] = []
        self.aggregated: list[int] = []
        self.backlog = np.zeros(workers, np.int64)
        self.held = np.zeros(workers, np.int64)
        self.arrived = 0

    def run(self) -> Outcome:
        for number, messages in enumerate(_by_slot(self.stream, self.slot, self.slots)):
            self._run_slot(number, messages)
        assert self.arrived == self.stream.messages
        if self.slots_per_period and self.slots % self.slots_per_period:
            self._aggregate()
        return Outcome(
            cluster=self.cluster,
            begins=self.begins,
            speeds=self.speeds,
            slot=self.slot,
            tick=self.tick,
            tally=self.tally,
            moves=self.moves,
            signals=self.signals,
            owned=self.owned,
            aggregated=np.array(self.aggregated, np.int64),
            probes=self.sources.probes,
            plan=self.sources.plan,
            end=self.end,
            states=self.states,
            first_moves=np.array(self.first_moves, np.int64).reshape(-1, 4),
        )

    def _run_slot(self, number: int, messages: "_Hashed") -> None:
        begin, end = number * self.slot, (number + 1) * self.slot
        bins = self.sources.route(self.arrived, messages.hashes)
        position, done = 0, False
        while not done:
            position, done = self._advance(position, messages, bins, begin, end)
            self._deliver(number)
            self._make_room()
        self.arrived += bins.size
        self._end_slot(number, begin, end)

    def _advance(
        self, position: int, messages: "_Hashed", bins: NDArray[np.int32], begin: float, end: float
    ) -> tuple[int, bool]:
        stopped, done = kernel.advance(
            position,
            self.arrived,
            messages.keys,
            messages.times,
            bins,
            self.sources.owners,
            self.begins,
            self.paces,
            self.slot,
            begin,
            end,
            self.tick,
            self.key_work,
            self.random_work,
            self.work_seed,
            self.stirs,
            self.workers,
            self.tally,
            self.acks,
        )
        return int(stopped), bool(done)

    def _deliver(self, slot: int) -> None:
        """Hand over the acknowledgements that have arrived, the earliest first."""
        arrived = self.acks.due[: self.acks.size[1]].tolist()
        self.acks.size[1] = 0
        signals = moves = 0
        for pair in arrived:
            worker, source = divmod(pair, self.sources.count)
            report = self.reports[worker]
            if report is not None:
                signals += 1
                made = self.sources.acknowledge(source, worker, report)
                moves += len(made)
                if source == 0:
                    self.first_moves += [(slot, m.virtual, m.giver, m.taker) for m in made]
        self.signals[slot] += signals
        self.moves[slot] += moves

    def _make_room(self) -> None:
        if self.acks.times.size and self.acks.size[0] == self.acks.times.size:
            longer = 2 * self.acks.times.size
            self.acks = self.acks._replace(
                times=np.resize(self.acks.times, longer), pairs=np.resize(self.acks.pairs, longer)
            )

    def _end_slot(self, number: int, begin: float, end: float) -> None:
        workers = self.workers
        idle = workers.idle + np.maximum(0.0, end - np.maximum(workers.free_at, begin))
        self.owned[number] = self.sources.owned
        arrivals = self._in_slot(number, self.tally.arrivals)
        self.backlog += arrivals - self._in_slot(number, self.tally.finishes)
        self.held += self._in_slot(number, self.tally.new_keys)
        self.sources.end_slot()
        if self.sides and end > self.quiet:
            self._report(number, end, arrivals, self.slot - idle)
        workers.idle[:] = 0
        workers.work_seconds[:] = 0
        if self.slots_per_period and (number + 1) % self.slots_per_period == 0:
            self._aggregate()

    def _in_slot(self, number: int, by_tick: NDArray[np.int64]) -> NDArray[np.int64]:
        first, ticks = number * self.ticks_per_slot, self.ticks_per_slot
        counts: NDArray[np.int64] = by_tick[first]
        return counts if ticks == 1 else by_tick[first : first + ticks].sum(axis=0)

    def _report(self, number: int, now: float, arrived: NDArray[np.int64], busy: Floats) -> None:
        era = int(np.searchsorted(self.begins, now, "right")) - 1
        # The mean of what arrived; of a worker to which nothing came, what one would have taken.
        service_times = np.where(arrived, self.workers.work_seconds, self.paces[era])
        service_times /= np.maximum(arrived, 1)
        columns = (arrived, self.backlog, service_times, busy, self.held)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        measured = [Measurement(*row) for row in rows]
        fair = None
        if self.compare_above is not None:
            # What a slot brought, not what was done in it: nobody is busier than all the time.
            brought = [replace(seen, busy=seen.arrivals * seen.service_time) for seen in measured]
            fair = fair_busy_time(brought)
            if fair is not None and fair > self.compare_above * self.slot:
                measured = brought
            else:
                fair = None
        for worker, (side, owned) in enumerate(
            zip(self.sides, self.owned[number].tolist(), strict=True)
        ):
            report = side.report(measured[worker], owned, now, fair)
            self.reports[worker] = report or self.reports[worker]
        # A delegation moves nothing for a normal worker, and nothing while nobody is busy.
        states = [report.state if report else Signal.NORMAL for report in self.reports]
        self.states[number] = [_STATES[state] for state in states]
        stirred = Signal.BUSY in states or self.sources.are_stirred
        self.stirs[:] = [stirred and state is not Signal.NORMAL for state in states]

    def _aggregate(self) -> None:
        """Every worker sends its partial states to the aggregator and forgets them."""
        self.aggregated.append(int(self.tally.partials.sum()))
        self.tally.partials[:] = 0
        self.tally.fresh[:] = 0


def _timetable(stream: Stream, cluster: Cluster) -> tuple[Floats, Floats]:
    named = [c.at_message for c in cluster.changes if c.at_message is not None]
    for message in named:
        require_whole("the message of a change", message, least=0, most=stream.messages - 1)
    return cluster.timetable([stream.time_of(message) for message in named])


def _refuse_overload(stream: Stream, cluster: Cluster, service: Service) -> None:
    """Compare the work that arrives before the last message with what can be done until then."""
    if stream.messages < 2:
        return
    end = stream.time_of(stream.messages - 1)
    begins, speeds = _timetable(stream, cluster)
    until = np.minimum(np.append(begins[1:], np.inf), end)
    possible = float((np.clip(until - begins, 0, None) * speeds.sum(axis=1)).sum())
    work = float(stream.messages - 1)
    if isinstance(service, PerKey):
        service.require_fit(stream.keys)
        work = sum(float(service.work[chunk.keys].sum()) for chunk in stream.chunks())
        work *= 1 - 1 / stream.messages
    # The last message has no time of its own before the end: a load of exactly 100 % passes.
    if work > possible * (1 + 1e-9):
        load = f"{work / possible:.0%}" if possible else "more than any amount"
        raise ValueError(
            f"the stream is {load} of what the cluster can do, so queues grow for ever; "
            "give it less load, or say overload if that is what you want to see"
        )


def _whole_ratio(name: str, length: float, unit_name: str, unit: float) -> int:
    require_between(name, length, above=0)
    ratio = round(length / unit)
    if ratio < 1 or abs(ratio * unit - length) > 1e-9 * length:
        raise ValueError(
            f"{name} must be a whole number of times {unit_name}, {unit} s, got {length} s"
        )
    return ratio


def _slots_until(end: float, slot: float) -> int:
    """Slots until one ends after the last message; by the same products that cut the stream."""
    slots = int(end / slot) + 1
    while slots * slot <= end:
        slots += 1
    return slots


class _Hashed(NamedTuple):
    """Some messages, with the hashes of their keys."""

    keys: NDArray[np.uint32]
    times: NDArray[np.float64]
    hashes: Hashes


def _by_slot(stream: Stream, slot: float, slots: int) -> Iterator[_Hashed]:
    """The stream cut at the ends of slots; a slot without messages is empty."""
    number = 0
    pieces: list[_Hashed] = []
    for chunk in stream.chunks():
        keys, times = chunk.keys, chunk.times
        hashes = hash_keys(pa.array(keys, pa.int64()))
        if not times.size:
            continue
        # By the same products that number the slots: no message falls between two of them.
        ends = np.arange(number + 1, int(times[-1] / slot) + 3) * slot
        begin = 0
        for cut in times.searchsorted(ends).tolist():
            pieces.append(_Hashed(keys[begin:cut], times[begin:cut], hashes[begin:cut]))
            if cut == times.size:
                break
            begin = cut
            yield _joined(pieces)
            pieces = []
            number += 1
    while number < slots:
        yield _joined(pieces)
        pieces = []
        number += 1


def _joined(pieces: list[_Hashed]) -> _Hashed:
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return _Hashed(np.empty(0, np.uint32), np.empty(0), np.empty(0, np.uint64))
    return _Hashed(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
