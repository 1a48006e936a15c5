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


Service = Deterministic | Exponential | PerKey
