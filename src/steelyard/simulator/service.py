"""The work of a message: one unit, a random amount, or an amount that depends on its key."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Deterministic:
    """Every message has one unit of work: its service time is 1 / speed seconds."""


@dataclass(frozen=True)
class Exponential:
    """The work of a message is exponentially distributed with mean 1."""

    seed: int = 0


@dataclass(frozen=True, eq=False)
class PerKey:
    """The work of a message depends on its key; `work` is indexed by the number of the key."""

    work: NDArray[np.float64]

    def require_fit(self, keys: int) -> None:
        """Raise a ValueError unless every key has a work of at least 0."""
        if self.work.ndim != 1 or self.work.size < keys:
            raise ValueError(
                f"work must have one number for each of {keys:,} keys, got shape {self.work.shape}"
            )
        if not (np.isfinite(self.work) & (self.work >= 0)).all():
            raise ValueError("work must be a finite number, at least 0, for every key")


Service = Deterministic | Exponential | PerKey
