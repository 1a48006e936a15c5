"""Streams of messages: numbered keys and arrival times."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Chunk:
    """Consecutive messages of a stream, in the order of their arrival."""

    keys: NDArray[np.uint32]
    """The key of each message: a number below the stream's `keys`."""
    times: NDArray[np.float64]
    """The arrival time of each message in seconds since the start; they never decrease."""


class Stream(Protocol):
    """Messages that arrive over time; a stream can be read more than once."""

    @property
    def keys(self) -> int:
        """The largest key plus one."""

    @property
    def messages(self) -> int:
        """The number of messages."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield all messages in chunks."""

    def time_of(self, message: int) -> float:
        """Return the arrival time of a message; the first message has number 0."""


@dataclass(frozen=True, eq=False)
class ArrayStream:
    """A stream in memory.

    >>> ArrayStream.at_rate(np.array([3, 1, 3]), rate=10).time_of(2)
    0.2
    """

    key_numbers: NDArray[np.uint32]
    times: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.key_numbers.shape != self.times.shape or self.times.ndim != 1:
            raise ValueError(
                "a stream needs one time for each key, got "
                f"{self.key_numbers.shape} keys and {self.times.shape} times"
            )
        if self.times.size and (self.times[0] < 0 or (np.diff(self.times) < 0).any()):
            raise ValueError("the times of a stream must start at 0 or later and never decrease")

    @classmethod
    def at_rate(cls, key_numbers: NDArray[np.integer], rate: float) -> "ArrayStream":
        """Create a stream in which `rate` messages arrive per second, at equal intervals."""
        times = np.arange(key_numbers.size) / rate
        return cls(key_numbers.astype(np.uint32), times)

    @property
    def keys(self) -> int:
        return int(self.key_numbers.max()) + 1 if self.key_numbers.size else 1

    @property
    def messages(self) -> int:
        return self.times.size

    def chunks(self) -> Iterator[Chunk]:
        for start in range(0, self.messages, 1 << 20):
            piece = slice(start, start + (1 << 20))
            yield Chunk(self.key_numbers[piece], self.times[piece])

    def time_of(self, message: int) -> float:
        return float(self.times[message])
