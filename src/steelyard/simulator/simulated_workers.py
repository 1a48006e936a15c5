"""The workers of a simulation: each turns its measurements into reports to the sources."""

from collections.abc import Sequence
from dataclasses import replace

from steelyard.delegation import Measurement, Report, Signal, WorkerSide, fair_busy_time
from steelyard.simulator.grouping import ConsistentGrouping, Grouping


class SimulatedWorkers:
    """The last report of every worker; without delegation workers make no reports."""

    def __init__(self, grouping: Grouping, workers: int, slot: float) -> None:
        self.reports: list[Report | None] = [None] * workers
        self._slot = slot
        self._sides: list[WorkerSide] = []
        self._compare_above: float | None = None
        if isinstance(grouping, ConsistentGrouping):
            self._sides = [grouping.rules.worker(slot) for _ in range(workers)]
            self._compare_above = grouping.compare_above

    @property
    def signals(self) -> list[Signal]:
        """The last signal of each worker; normal before its first report."""
        return [report.state if report else Signal.NORMAL for report in self.reports]

    def report(self, measured: Sequence[Measurement], owned: Sequence[float], now: float) -> None:
        """Make each worker's report from its measurements of the slot that ends now."""
        measured, fair = self._compared(measured)
        for worker, side in enumerate(self._sides):
            report = side.report(measured[worker], owned[worker], now, fair)
            self.reports[worker] = report or self.reports[worker]

    def _compared(
        self, measured: Sequence[Measurement]
    ) -> tuple[Sequence[Measurement], float | None]:
        """Return the measurements and, if the load is high, the fair busy time of a worker.

        If the load is high, the busy times are those of the work that arrived in the slot.
        """
        if self._compare_above is None:
            return measured, None
        # A worker is never busy for longer than a slot, but more work than that may arrive.
        arrived = [replace(seen, busy=seen.arrivals * seen.service_time) for seen in measured]
        fair = fair_busy_time(arrived)
        if fair is None or fair <= self._compare_above * self._slot:
            return measured, None
        return arrived, fair
