"""Measure the resources of the processes of a stream, and decide whether they grow.

Processes enter repeatedly; their early and late usage leaves.
"""

import csv
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from statistics import median

from benchmarks.soak.processes import KINDS, Process, Usage

MEASURES = tuple(of.name for of in fields(Usage))

_JVM, _PYTHON = 1.4, 1.1
"""Allowed factors of growth of memory; the heap of a JVM grows in steps up to its limit."""

_SLACK = 10
"""Allowed growth of the number of sockets, files and threads of each kind of process."""


@dataclass(frozen=True)
class Growth:
    """One measure of one kind of process, early and late.

    Early is the maximum of the first half, because a pool of threads shrinks while there is little
    work and grows again. Late is the median of the last quarter.
    """

    kind: str
    measure: str
    early: float
    late: float

    @property
    def is_allowed(self) -> bool:
        """Whether the growth is within the allowed limits."""
        if self.measure == "megabytes":
            return self.late <= self.early * (_PYTHON if "Python" in self.kind else _JVM)
        return self.late <= self.early + _SLACK


@dataclass
class Watch:
    """The total usage of each kind of process, over the micro-batches of a stream."""

    seen: dict[str, list[tuple[int, Usage]]] = field(default_factory=dict)

    def measure(self, batches: int, processes: Sequence[Process]) -> None:
        """Record the usage of processes after a number of micro-batches."""
        for kind in KINDS:
            usages = (process.usage for process in processes if process.kind == kind)
            self.seen.setdefault(kind, []).append((batches, sum(usages, Usage())))

    def growth(self) -> dict[str, list[Growth]]:
        """Return all measures of each kind of process that ran."""
        return {
            kind: [_growth(kind, of, usages) for of in MEASURES]
            for kind, usages in self.seen.items()
            if any(usage != Usage() for _, usage in usages)
        }

    def write(self, file: Path) -> None:
        """Write every measurement, as CSV."""
        with file.open("w") as out:
            writer = csv.writer(out)
            writer.writerow(["kind", "batches", *MEASURES])
            for kind, usages in self.seen.items():
                writer.writerows([kind, batches, *astuple(usage)] for batches, usage in usages)


def _growth(kind: str, measure: str, usages: Sequence[tuple[int, Usage]]) -> Growth:
    first, last = usages[0][0], usages[-1][0]
    parts = [((at - first) / (last - first), getattr(usage, measure)) for at, usage in usages]
    early = max(size for part, size in parts if part <= 0.5)
    return Growth(kind, measure, early, median(size for part, size in parts if part >= 0.75))
