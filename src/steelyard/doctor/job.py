"""The job that the doctor examines, as lines of code.

The work, the key and the workers enter; lines of code leave.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from steelyard.doctor.estimates import NO_ESTIMATES, Estimates
from steelyard.doctor.key_counts import BUCKETS
from steelyard.doctor.plain_text import worker_count
from steelyard.doctor.work import STREAM, KindOfWork
from steelyard.plans import Planner
from steelyard.printable import printable
from steelyard.validation import require_whole

_ROW_BYTES = 60.0
"""Bytes of a row if they are neither given nor measured."""


@dataclass(frozen=True)
class Job:
    """A kind of work on the rows of a key, and the workers that share it."""

    work: KindOfWork
    key: tuple[str, ...]
    workers: int
    capacities: tuple[float, ...] | None = None
    computed: Mapping[str, str] = field(default_factory=dict)
    """The code of key columns that the data lacks: fields of other columns, and expressions."""
    estimates: Estimates = NO_ESTIMATES

    def __post_init__(self) -> None:
        require_whole("workers", self.workers, least=1, most=BUCKETS)
        if self.capacities is not None and len(self.capacities) != self.workers:
            raise ValueError(
                f"capacities must be one number for each of {worker_count(self.workers)}, "
                f"got {len(self.capacities)}"
            )
        Planner(self.workers, buckets=BUCKETS, capacities=self.capacities)  # checks capacities

    @property
    def spark_code(self) -> str:
        """Spark's own line of code."""
        return self._filled(self.work.spark_code)

    @property
    def balanced_code(self) -> str | None:
        """Steelyard's line of code; None if Spark's own code needs no balancing."""
        code = self.work.balanced_code
        return None if code is None else self._filled(code)

    def code_with_partitions(self, partitions: int) -> str | None:
        """Spark's own line of code with more partitions; None if that does not help."""
        code = self.work.code_with_partitions
        return None if code is None else self._filled(code, partitions=partitions)

    def code_with_settings(self, settings: Mapping[str, str]) -> str:
        """Spark's own line of code, after the settings of Spark."""
        lines = [f'spark.conf.set(\n    "{name}", "{value}"\n)' for name, value in settings.items()]
        return "\n".join([*lines, self.spark_code])

    @property
    def has_counting_pass(self) -> bool:
        """Whether the balanced code reads the rows an additional time to count them."""
        return self.work != STREAM

    @property
    def broadcasting_code(self) -> str:
        """A line of code that joins without a shuffle."""
        return self._filled("{frame}.join(F.broadcast(other), {on})")

    @property
    def row_time(self) -> float:
        """Microseconds that the work takes for a row."""
        return self.estimates.row_time or self.work.row_time

    @property
    def row_bytes(self) -> float:
        """Bytes of a row in a shuffle."""
        return self.estimates.row_bytes or _ROW_BYTES

    @property
    def code_without_nulls(self) -> str:
        """Spark's own line of code, on the rows whose key has no null."""
        frame = f"{self._frame}.dropna(subset=[{self._keys}])"
        return self._filled(self.work.spark_code, frame)

    @property
    def counting_code(self) -> str:
        """A line of code that counts the rows of each key."""
        return f"{self._frame}.groupBy({self._keys}).count()"

    def _filled(
        self, template: str, frame: str | None = None, partitions: int | None = None
    ) -> str:
        has_capacities = self.capacities is not None
        delegated = ", placement=sy.Delegated(capacities=capacities)"
        return template.format(
            frame=self._frame if frame is None else frame,
            keys=self._keys,
            on=self._keys if len(self.key) == 1 else f"[{self._keys}]",
            workers=self.workers,
            partitions=partitions,
            capacities=", capacities=capacities" if has_capacities else "",
            placement=delegated if has_capacities else "",
        )

    @property
    def _frame(self) -> str:
        """The DataFrame; keys that the data lacks become columns first."""
        added = (f".withColumn({_quoted(_flat(n))}, {code})" for n, code in self.computed.items())
        return self.work.frame + "".join(added)

    @property
    def _keys(self) -> str:
        names = (_flat(name) if name in self.computed else name for name in self.key)
        return ", ".join(map(_quoted, names))


def _quoted(name: str) -> str:
    return printable(json.dumps(name, ensure_ascii=False))


def _flat(name: str) -> str:
    """Return a name for a new column, without dots and brackets."""
    return re.sub(r"\W+", "_", name).strip("_") or "key"
