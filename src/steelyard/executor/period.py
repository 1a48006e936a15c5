"""When partial states leave a worker that keeps them.

The number of a micro-batch and its latest event time enter; the number of a period leaves.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Period:
    """When partial states leave a worker: after so many batches, or so much event time."""

    batches: int = 1
    micros: int = 0

    def of(self, batch: int, latest: int | None) -> int:
        """The number of the period that a batch is in, whose latest event time is that."""
        if not self.micros:
            return batch // self.batches
        return -1 if latest is None else latest // self.micros

    def ends_with(self, batch: int) -> bool:
        """Whether nothing more can come into the period of a batch."""
        return not self.micros and (batch + 1) % self.batches == 0

    @property
    def length(self) -> str:
        """The length of a period: numbers of periods of another length mean something else."""
        return f"{self.micros} us" if self.micros else f"{self.batches} batches"
