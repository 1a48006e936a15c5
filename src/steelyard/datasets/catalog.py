"""Generate streams like those of the paper's evaluation: `zf`, `wp`, `wp-steep` and `tw`.

A name, a fraction and a seed enter; a stream leaves. Its numbers of messages and keys, and the
share of its hottest key, are those of the paper's table of data sets. The table does not give the
rest of the distribution, so there are two Wikipedia streams: one with a flat head, one with a
steep head.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steelyard.datasets.message_stream import Chunk
from steelyard.validation import require_between, require_whole

if TYPE_CHECKING:
    from steelyard.datasets.ranks import RankShape

Floats = NDArray[np.float64]

HOUR = 3600.0
DAY = 24 * HOUR
CHUNK = 1 << 20

# fmt: off
DAILY_RATE = (
    0.74, 0.72, 0.71, 0.69, 0.63, 0.63, 0.76, 0.81, 0.92, 0.97, 1.01, 1.11,
    1.24, 1.32, 1.36, 1.38, 1.38, 1.30, 1.24, 1.21, 1.16, 1.05, 0.87, 0.79,
)
# fmt: on
"""The messages in each hour of a day relative to the mean hour: the rates of real web traffic."""


@dataclass(frozen=True)
class Dataset:
    """A stream that is generated from its settings, whole or in parts; see `named`.

    The same settings give the same messages, regardless of how the stream is split into parts.

    Args:
        name: The name of the data set, which decides the distribution of its keys.
        messages: The number of messages.
        seconds: The length of the stream.
        rate: The relative rates of equally long parts of the time, such as `DAILY_RATE`.
        skew: The Zipf exponent; for `zf` only.
        ranks: The number of keys; for `zf` only.
        drift: The hot keys change after each `drift` messages; None keeps them.
        seed: The seed of the random numbers.

    >>> day = named("wp", fraction=0.001)
    >>> day.messages, day.seconds
    (22000, 86400.0)
    >>> part = day.part(first=10_000, count=3)
    >>> part.times.round(1).tolist()
    [46711.8, 46715.0, 46718.2]
    >>> day.key_names(part.keys).to_pylist()
    ['wp-...', 'wp-...', 'wp-...']
    """

    name: str
    messages: int
    seconds: float = DAY
    rate: tuple[float, ...] = (1.0,)
    skew: float = 1.0
    ranks: int = 100_000
    drift: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        require_whole("messages", self.messages, least=1)
        require_between("seconds", self.seconds, above=0)
        if self.drift is not None:
            require_whole("drift", self.drift, least=1)

    @property
    def shape(self) -> "RankShape":
        """The distribution of the messages over the keys."""
        return _shape(self.name, self.skew, self.ranks)

    @property
    def keys(self) -> int:
        """The number of possible keys; a part of them occurs in the stream."""
        return self.shape.ranks

    def part(self, first: int, count: int) -> Chunk:
        """Return the messages `first` to `first + count - 1`."""
        count = max(0, min(count, self.messages - first))
        keys = self.shape.draw(first, count, self.seed)
        if self.drift is not None:
            era = (np.arange(first, first + count) // self.drift).astype(np.uint64)
            # A golden-ratio step keeps the hot keys of many eras far apart.
            turn = era * np.uint64(round(self.keys * 0.6180339887))
            keys = ((keys.astype(np.uint64) + turn) % np.uint64(self.keys)).astype(np.uint32)
        return Chunk(keys, self._times(np.arange(first, first + count)))

    def chunks(self) -> Iterator[Chunk]:
        """Yield all messages, about a million at a time."""
        for first in range(0, self.messages, CHUNK):
            yield self.part(first, CHUNK)

    def time_of(self, message: int) -> float:
        """Return the arrival time of a message; the first message has number 0."""
        return float(self._times(np.array([message]))[0])

    def key_names(self, keys: NDArray[np.uint32]) -> pa.Array:
        """Return keys as text, such as `wp-17`."""
        numbers = pc.cast(pa.array(keys), pa.string())
        return pc.binary_join_element_wise(self.name, numbers, "-")

    def steady(self) -> "Dataset":
        """Return the same data set with a constant rate."""
        return replace(self, rate=(1.0,))

    def _times(self, messages: NDArray[np.int64]) -> Floats:
        # A message is in the middle of its interval, so no message is at the very start or end.
        begins, reach = self._clock
        return np.interp((messages + 0.5) / self.messages, reach, begins)

    @cached_property
    def _clock(self) -> tuple[Floats, Floats]:
        weights = np.array(self.rate)
        reach = np.concatenate([[0.0], weights.cumsum() / weights.sum()])
        return np.linspace(0, self.seconds, reach.size), reach


def names() -> list[str]:
    """Return the names that `named` accepts.

    >>> names()
    ['zf', 'wp', 'wp-steep', 'tw']
    """
    return list(_DATASETS)


def named(
    name: str,
    *,
    fraction: float = 1.0,
    skew: float | None = None,
    keys: int | None = None,
    drift: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Return a data set of the paper, or a fraction of it: fewer messages in the same time.

    Args:
        name: The name of the data set.
        fraction: The fraction of the messages to keep.
        skew: The Zipf exponent; for `zf` only.
        keys: The number of keys; for `zf` only.
        drift: The hot keys change after each `drift` messages; None keeps them.
        seed: The seed of the random numbers.

    >>> named("zf", skew=1.4, fraction=0.1).messages
    1000000
    """
    if name not in _DATASETS:
        raise ValueError(
            f"no data set is named {name!r}; the data sets are: {', '.join(_DATASETS)}"
        )
    require_between("fraction", fraction, above=0)
    require_whole("seed", seed, least=0)
    whole = _DATASETS[name]
    if name != "zf" and (skew is not None or keys is not None):
        raise ValueError(f"skew and keys are settings of the data set 'zf', not of {name!r}")
    if skew is not None:
        require_between("skew", skew, least=0, most=10)
        whole = replace(whole, skew=skew)
    if keys is not None:
        require_whole("keys", keys, least=1, most=2**32)
        whole = replace(whole, ranks=keys)
    messages = max(1, round(whole.messages * fraction))
    return replace(whole, messages=messages, drift=drift, seed=seed)


_DATASETS = {
    "zf": Dataset("zf", 10_000_000),
    "wp": Dataset("wp", 22_000_000, DAY, DAILY_RATE),
    "wp-steep": Dataset("wp-steep", 22_000_000, DAY, DAILY_RATE),
    # July: 31 days. All have the same daily rates, because those of the tweets are not published.
    "tw": Dataset("tw", 1_200_000_000, 31 * DAY, DAILY_RATE * 31),
}


@lru_cache(maxsize=4)  # a table has 8 MB, its guide 4 MB
def _shape(name: str, skew: float, ranks: int) -> "RankShape":
    # Imported late, because draws are compiled and loading files needs no compiler.
    from steelyard.datasets.ranks import PowerLaw, RankShape

    match name:
        case "wp":
            return _wikipedia()
        case "wp-steep":
            return RankShape(24_500_000, PowerLaw(1.067), PowerLaw(1.067))
        case "tw":
            return _tweets()
        case _:
            return RankShape(ranks, PowerLaw(skew), PowerLaw(skew))


def _wikipedia() -> "RankShape":
    """Return a distribution in which one page has 9.32 % of the visits, then a slow decline."""
    from steelyard.datasets.ranks import PowerLaw, RankShape

    ranks, rest = 4_500_000, PowerLaw(0.95, shift=10)
    others = rest(np.arange(2, 4097)).sum() + rest.sum(4097, ranks)
    first = 0.0932 / (1 - 0.0932) * others

    def head(numbers: NDArray[np.int64]) -> Floats:
        return np.where(numbers == 1, first, rest(numbers))

    return RankShape(ranks, head, rest)


def _tweets() -> "RankShape":
    """Return a distribution of words: slope 1 up to rank 2,760, then a steeper tail."""
    from steelyard.datasets.ranks import PowerLaw, RankShape

    bend = 2760
    common = PowerLaw(1.0, shift=2.8)
    height = float(common(np.array([bend]))[0])
    rare = PowerLaw(1.316, scale=height * bend**1.316)

    def head(numbers: NDArray[np.int64]) -> Floats:
        return np.where(numbers <= bend, common(numbers), rare(numbers))

    return RankShape(4_000_000_000, head, rare)
