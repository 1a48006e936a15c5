"""Decide when partial states leave a worker that keeps them.

The number of a micro-batch and its latest event time enter; the number of a period leaves.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Period:
    """The length of a period: a number of micro-batches, or a length of event time."""

    batches: int = 1
    micros: int = 0
    """Microseconds of event time; 0: the period is a number of micro-batches."""

    def of(self, batch: int, latest: int | None) -> int:
        """Return the number of the period of a micro-batch with this latest event time."""
        if not self.micros:
            return batch // self.batches
        return -1 if latest is None else latest // self.micros

    def ends_with(self, batch: int) -> bool:
        """Whether this micro-batch is the last one of its period."""
        return not self.micros and (batch + 1) % self.batches == 0

    @property
    def length(self) -> str:
        """The length as text; period numbers are comparable only if the lengths are equal."""
        return f"{self.micros} us" if self.micros else f"{self.batches} batches"
