"""The streams of experiments: generated data sets, and files of real messages."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steelyard.datasets import ArrayStream, Dataset, Stream
from steelyard.datasets.loading import Loaded, OnMalformed, load

_IN_MEMORY = 30_000_000
"""Streams with at most this many messages are kept in memory for the next configuration."""

_MOST_KEYS = 50_000_000
"""The keys of a stream with more possible keys are renumbered, so that only those that occur
count."""

_DAY = 86_400.0


@dataclass(frozen=True)
class FileStream:
    """The messages of files in the order of their times, or of the lines if they have no times.

    Args:
        path: A file or a folder.
        format: The name of the format.
        name: The name of the stream in results.
        messages: The number of messages.
        seconds: The length of the stream; messages without times arrive at a constant rate.
        key: The column of the keys.
        time: The column of the times.
        on_malformed: "stop" or "skip", as in `steelyard.datasets.load`.
        seed: The seed in results; files need no random numbers.
    """

    path: str
    format: str
    name: str
    messages: int
    seconds: float = _DAY
    key: str | None = None
    time: str | None = None
    on_malformed: OnMalformed = "stop"
    seed: int = 0

    @classmethod
    def of(
        cls,
        path: str | Path,
        format: str,  # noqa: A002 - the usual name
        *,
        key: str | None = None,
        time: str | None = None,
        on_malformed: OnMalformed = "stop",
        most: int | None = None,
    ) -> "FileStream":
        """Create the stream of these files.

        Args:
            path: A file or a folder.
            format: The name of a format.
            key: The column of the keys.
            time: The column of the times.
            on_malformed: "stop" or "skip", as in `steelyard.datasets.load`.
            most: The largest number of messages; None for all.
        """
        loaded = _load(str(path), format, key, time, on_malformed)
        times = _times(loaded)
        messages = min(loaded.messages.num_rows, most or loaded.messages.num_rows)
        if messages < 2:
            raise ValueError(f"a stream needs at least two messages, {str(path)!r} has {messages}")
        seconds = _DAY
        if times is not None:
            seconds = float(times[messages - 1] - times[0]) * messages / (messages - 1)
            if seconds == 0:
                raise ValueError(f"all messages of {str(path)!r} have the same time")
        name = Path(path).name.split(".")[0]
        return cls(str(path), format, name, messages, seconds, key, time, on_malformed)

    @property
    def malformed(self) -> int:
        """The number of malformed lines."""
        return _load(self.path, self.format, self.key, self.time, self.on_malformed).malformed

    def open(self) -> ArrayStream:
        """Return the messages; keys are numbered by their frequency, 0 for the hottest key."""
        loaded = _load(self.path, self.format, self.key, self.time, self.on_malformed)
        column = loaded.messages["key"].combine_chunks()
        if pa.types.is_nested(column.type):
            raise ValueError(
                f"keys of type {column.type} cannot be simulated; choose another key column"
            )
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        numbers = encoded.indices.to_numpy()
        times = _times(loaded)
        if times is not None:
            numbers = numbers[np.argsort(_raw_times(loaded), kind="stable")]
        numbers = numbers[: self.messages]
        rank = np.empty(len(encoded.dictionary), np.uint32)
        counts = np.bincount(numbers, minlength=rank.size)
        rank[np.argsort(-counts, kind="stable")] = np.arange(rank.size)
        if times is None:
            return ArrayStream.at_rate(rank[numbers], rate=self.messages / self.seconds)
        return ArrayStream(rank[numbers], times[: self.messages] - times[0])


InputStream = Dataset | FileStream


@lru_cache(maxsize=1)
def opened(stream: InputStream) -> Stream:
    """Return the messages of a stream, in memory unless there are too many."""
    if isinstance(stream, FileStream):
        return stream.open()
    is_wide = stream.keys > _MOST_KEYS
    if stream.messages > _IN_MEMORY:
        if is_wide:
            raise ValueError(
                f"{stream.messages:,} messages of {stream.name} have too many keys to simulate; "
                f"set fraction so that there are at most {_IN_MEMORY:,} messages"
            )
        return stream
    chunks = list(stream.chunks())
    keys = np.concatenate([chunk.keys for chunk in chunks])
    if is_wide:  # renumber the keys that occur, in the same order
        keys = np.unique(keys, return_inverse=True)[1].astype(np.uint32)
    return ArrayStream(keys, np.concatenate([chunk.times for chunk in chunks]))


@lru_cache(maxsize=4)
def hottest_key(stream: InputStream) -> int:
    """Return the key with the most messages."""
    messages = opened(stream)
    counts = np.zeros(messages.keys, np.int64)
    for chunk in messages.chunks():
        counts += np.bincount(chunk.keys, minlength=counts.size)
    return int(counts.argmax())


@lru_cache(maxsize=1)
def _load(
    path: str,
    format: str,  # noqa: A002
    key: str | None,
    time: str | None,
    on_malformed: OnMalformed,
) -> Loaded:
    return load(path, format, key=key, time=time, on_malformed=on_malformed)


def _raw_times(loaded: Loaded) -> NDArray[np.float64]:
    times: NDArray[np.float64] = loaded.messages["time"].to_numpy()
    return times


def _times(loaded: Loaded) -> NDArray[np.float64] | None:
    """Return the times of the messages in ascending order; None if there are no times."""
    column = loaded.messages["time"]
    if column.null_count or not len(column):
        return None
    return np.sort(_raw_times(loaded))
