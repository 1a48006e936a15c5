"""How long a message takes: one unit of work, a random amount, or what its key says."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Deterministic:
    """Every message is one unit of work: 1 / speed seconds."""


@dataclass(frozen=True)
class Exponential:
    """Work is exponentially distributed with mean 1."""

    seed: int = 0


@dataclass(frozen=True, eq=False)
class PerKey:
    """Work by key number."""

    work: NDArray[np.float64]

    def require_fit(self, keys: int) -> None:
        """Refuse work that is missing for a key, or is no number of at least 0."""
        if self.work.ndim != 1 or self.work.size < keys:
            raise ValueError(
                f"work must be one number for each of {keys:,} keys, got shape {self.work.shape}"
            )
        if not (np.isfinite(self.work) & (self.work >= 0)).all():
            raise ValueError("work must be numbers of at least 0 for all keys")


Service = Deterministic | Exponential | PerKey
