"""Watch what the processes of a stream use, and say whether it grows.

Processes enter, again and again; what they used early and late leaves.
"""

import csv
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from statistics import median

from benchmarks.soak.processes import KINDS, Process, Usage

MEASURES = tuple(of.name for of in fields(Usage))

_JVM, _PYTHON = 1.4, 1.1
"""Factors by which memory may grow by chance: the heap of a JVM grows in steps up to its limit."""

_SLACK = 10
"""By how many sockets, files and threads each kind of process may grow by chance."""


@dataclass(frozen=True)
class Growth:
    """One measure of one kind of process, early and late.

    Early is the maximum of the first half, because a pool of threads shrinks while little is done
    and fills up again; late is the median of the last quarter.
    """

    kind: str
    measure: str
    early: float
    late: float

    @property
    def is_allowed(self) -> bool:
        """Whether this may be chance."""
        if self.measure == "megabytes":
            return self.late <= self.early * (_PYTHON if "Python" in self.kind else _JVM)
        return self.late <= self.early + _SLACK


@dataclass
class Watch:
    """What all processes of each kind used together, over the micro-batches of a stream."""

    seen: dict[str, list[tuple[int, Usage]]] = field(default_factory=dict)

    def look(self, batches: int, processes: Sequence[Process]) -> None:
        """Note what these use after so many micro-batches."""
        for kind in KINDS:
            usages = (process.usage for process in processes if process.kind == kind)
            self.seen.setdefault(kind, []).append((batches, sum(usages, Usage())))

    def growth(self) -> dict[str, list[Growth]]:
        """All measures of each kind that was seen."""
        return {
            kind: [_growth(kind, of, looks) for of in MEASURES]
            for kind, looks in self.seen.items()
            if any(usage != Usage() for _, usage in looks)
        }

    def write(self, file: Path) -> None:
        """Write every measurement, as CSV."""
        with file.open("w") as out:
            writer = csv.writer(out)
            writer.writerow(["kind", "batches", *MEASURES])
            for kind, looks in self.seen.items():
                writer.writerows([kind, batches, *astuple(usage)] for batches, usage in looks)


def _growth(kind: str, measure: str, looks: Sequence[tuple[int, Usage]]) -> Growth:
    first, last = looks[0][0], looks[-1][0]
    parts = [((at - first) / (last - first), getattr(usage, measure)) for at, usage in looks]
    early = max(size for part, size in parts if part <= 0.5)
    return Growth(kind, measure, early, median(size for part, size in parts if part >= 0.75))
