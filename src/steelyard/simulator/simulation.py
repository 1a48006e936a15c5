"""Run a stream through sources, workers and delegation.

A stream, a cluster, a grouping and settings enter; an outcome leaves.
"""

import numpy as np
from numpy.typing import NDArray

from steelyard.datasets.message_stream import Stream
from steelyard.delegation import Measurement, Signal
from steelyard.simulator import kernel
from steelyard.simulator.cluster import Cluster, Floats
from steelyard.simulator.grouping import ConsistentGrouping, Grouping
from steelyard.simulator.outcome import Outcome
from steelyard.simulator.overload import refuse_overload, timetable
from steelyard.simulator.service import Exponential, PerKey, Service
from steelyard.simulator.simulated_sources import SimulatedSources
from steelyard.simulator.simulated_workers import SimulatedWorkers
from steelyard.simulator.simulation_settings import SimulationSettings
from steelyard.simulator.slot_messages import SlotMessages, messages_by_slot, slots_until

_STATES = {Signal.IDLE: -1, Signal.NORMAL: 0, Signal.BUSY: 1}


def simulate(
    stream: Stream,
    cluster: Cluster,
    grouping: Grouping,
    settings: SimulationSettings | None = None,
) -> Outcome:
    """Simulate every message of a stream on a cluster.

    Workers report at the end of every slot, but not in the first `quiet` seconds. Messages are
    counted by tick. With a `period`, workers send their partial states to an aggregator once per
    period and start with empty states. A stream that needs more than the capacity of the cluster
    is refused unless the settings allow overload.

    Args:
        stream: The messages that arrive.
        cluster: The workers and their speeds.
        grouping: The rule by which sources choose the worker of a message.
        settings: Slots, sources, service times and seed; `SimulationSettings()` by default.

    Returns:
        The outcome: series over time, and totals.

    Raises:
        ValueError: The stream needs more than the capacity of the cluster, or a setting does not
            suit the stream.

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
    settings = settings or SimulationSettings()
    if not settings.overload:
        refuse_overload(stream, cluster, settings.service)
    return _Simulation(stream, cluster, grouping, settings).run()


class _Simulation:
    def __init__(
        self, stream: Stream, cluster: Cluster, grouping: Grouping, settings: SimulationSettings
    ) -> None:
        workers, slot = cluster.workers, settings.slot
        self.stream, self.cluster, self.settings = stream, cluster, settings
        self.ticks_per_slot = settings.ticks_per_slot
        self.slots_per_period = settings.slots_per_period
        self.delegates = isinstance(grouping, ConsistentGrouping)
        self.sources = SimulatedSources(grouping, settings.sources, workers, settings.seed)
        self.workers = SimulatedWorkers(grouping, workers, slot)
        self.begins, self.speeds = timetable(stream, cluster)
        self.speed_table = kernel.SpeedTable(self.begins, 1 / self.speeds)
        self.work_table = _work_table(settings.service, stream)
        self.end = stream.time_of(stream.messages - 1) if stream.messages else 0.0
        self.slots = slots_until(self.end, slot)
        self.clocks = kernel.WorkerClocks.start(workers, settings.tick_length)
        self.tally = kernel.Tally.empty(
            self.slots * self.ticks_per_slot,
            workers,
            stream.keys,
            aggregated=settings.period is not None,
        )
        signaled = settings.sources if self.delegates else 0
        self.acks = kernel.Acknowledgments.empty(workers, signaled, slot)
        self.moves = np.zeros(self.slots, np.int64)
        self.signals = np.zeros(self.slots, np.int64)
        self.owned = np.zeros((self.slots, workers))
        self.states = np.zeros((self.slots if self.delegates else 0, workers), np.int8)
        self.first_moves: list[tuple[int, int, int, int]] = []
        self.aggregated: list[int] = []
        self.backlog = np.zeros(workers, np.int64)
        self.held = np.zeros(workers, np.int64)
        self.arrived = 0

    def run(self) -> Outcome:
        slots = messages_by_slot(self.stream, self.settings.slot, self.slots)
        for number, messages in enumerate(slots):
            self._run_slot(number, messages)
        assert self.arrived == self.stream.messages
        if self.slots_per_period and self.slots % self.slots_per_period:
            self._aggregate()
        return Outcome(
            cluster=self.cluster,
            begins=self.begins,
            speeds=self.speeds,
            slot=self.settings.slot,
            tick=self.settings.tick_length,
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

    def _run_slot(self, number: int, messages: SlotMessages) -> None:
        slot = self._bounds(number)
        bins = self.sources.route(self.arrived, messages.hashes)
        arrivals = kernel.Arrivals(self.arrived, messages.keys, messages.times, bins)
        position, done = 0, False
        while not done:
            position, done = self._advance(position, arrivals, slot)
            self._deliver(number)
            self.acks = self.acks.with_room()
        self.arrived += bins.size
        self._end_slot(number, slot)

    def _bounds(self, number: int) -> kernel.SlotBounds:
        length = float(self.settings.slot)
        tick = float(self.settings.tick_length)
        return kernel.SlotBounds(number * length, (number + 1) * length, length, tick)

    def _advance(
        self, position: int, arrivals: kernel.Arrivals, slot: kernel.SlotBounds
    ) -> tuple[int, bool]:
        stopped, done = kernel.advance(
            position,
            arrivals,
            self.sources.owners,
            slot,
            self.speed_table,
            self.work_table,
            self.clocks,
            self.tally,
            self.acks,
        )
        return int(stopped), bool(done)

    def _deliver(self, slot: int) -> None:
        """Deliver the acknowledgments that have arrived to the sources, the earliest first."""
        arrived = self.acks.due[: self.acks.size[1]].tolist()
        self.acks.size[1] = 0
        signals = moves = 0
        for pair in arrived:
            worker, source = divmod(pair, self.sources.count)
            report = self.workers.reports[worker]
            if report is not None:
                signals += 1
                made = self.sources.acknowledge(source, worker, report)
                moves += len(made)
                if source == 0:
                    self.first_moves += [(slot, m.virtual, m.giver, m.taker) for m in made]
        self.signals[slot] += signals
        self.moves[slot] += moves

    def _end_slot(self, number: int, slot: kernel.SlotBounds) -> None:
        clocks = self.clocks
        idle = clocks.idle + np.maximum(0.0, slot.end - np.maximum(clocks.free_at, slot.begin))
        self.owned[number] = self.sources.owned
        arrivals = self._in_slot(number, self.tally.arrivals)
        self.backlog += arrivals - self._in_slot(number, self.tally.finishes)
        self.held += self._in_slot(number, self.tally.new_keys)
        self.sources.end_slot()
        if self.delegates and slot.end > self.settings.quiet:
            measured = self._measurements(slot.end, arrivals, slot.length - idle)
            self.workers.report(measured, self.owned[number].tolist(), slot.end)
            self._note_signals(number)
        clocks.idle[:] = 0
        clocks.work_seconds[:] = 0
        if self.slots_per_period and (number + 1) % self.slots_per_period == 0:
            self._aggregate()

    def _in_slot(self, number: int, by_tick: NDArray[np.int64]) -> NDArray[np.int64]:
        first, ticks = number * self.ticks_per_slot, self.ticks_per_slot
        counts: NDArray[np.int64] = by_tick[first]
        return counts if ticks == 1 else by_tick[first : first + ticks].sum(axis=0)

    def _measurements(
        self, now: float, arrived: NDArray[np.int64], busy: Floats
    ) -> list[Measurement]:
        """Return the measurements of each worker in the slot that ends now."""
        row = int(np.searchsorted(self.begins, now, "right")) - 1
        # The mean service time of the arrivals; without arrivals, that of one unit of work.
        unit = self.speed_table.service_times[row]
        service_times = np.where(arrived, self.clocks.work_seconds, unit)
        service_times /= np.maximum(arrived, 1)
        columns = (arrived, self.backlog, service_times, busy, self.held)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Measurement(*row) for row in rows]

    def _note_signals(self, slot: int) -> None:
        """Record the signals, and which workers' acknowledgments may move a virtual worker.

        Delegation moves no virtual worker for a normal worker or while no worker is busy.
        """
        signals = self.workers.signals
        self.states[slot] = [_STATES[signal] for signal in signals]
        can_move = Signal.BUSY in signals or self.sources.have_pending_giver
        self.acks.may_move[:] = [can_move and signal is not Signal.NORMAL for signal in signals]

    def _aggregate(self) -> None:
        """Count the partial states that workers send to the aggregator, and clear them."""
        self.aggregated.append(int(self.tally.partials.sum()))
        self.tally.partials[:] = 0
        self.tally.fresh[:] = 0


def _work_table(service: Service | None, stream: Stream) -> kernel.WorkTable:
    by_key = np.empty(0)
    if isinstance(service, PerKey):
        service.require_fit(stream.keys)
        by_key = service.work
    is_random = isinstance(service, Exponential)
    seed = np.uint64(service.seed if isinstance(service, Exponential) else 0)
    return kernel.WorkTable(by_key, is_random, seed)
