"""The workers of a simulation: each turns what it measured into a report to the sources."""

from collections.abc import Sequence
from dataclasses import replace

from steelyard.delegation import Measurement, Report, Signal, WorkerSide, fair_busy_time
from steelyard.simulator.grouping import ConsistentGrouping, Grouping


class SimulatedWorkers:
    """The last report of every worker; without delegation no worker reports."""

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
        """What each worker reported last; normal before its first report."""
        return [report.state if report else Signal.NORMAL for report in self.reports]

    def report(self, measured: Sequence[Measurement], owned: Sequence[float], now: float) -> None:
        """Let every worker report what it measured in the slot that ends now."""
        measured, fair = self._compared(measured)
        for worker, side in enumerate(self._sides):
            report = side.report(measured[worker], owned[worker], now, fair)
            self.reports[worker] = report or self.reports[worker]

    def _compared(
        self, measured: Sequence[Measurement]
    ) -> tuple[Sequence[Measurement], float | None]:
        """Where the load is high, what the slot brought, and the busy time that would be fair."""
        if self._compare_above is None:
            return measured, None
        # What a slot brought, not what was done in it: nobody is busier than all the time.
        brought = [replace(seen, busy=seen.arrivals * seen.service_time) for seen in measured]
        fair = fair_busy_time(brought)
        if fair is None or fair <= self._compare_above * self._slot:
            return measured, None
        return brought, fair
