"""The streams of experiments: data sets, and files of real messages."""

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
"""Streams up to this many messages are made once and kept for the next configuration."""

_MOST_KEYS = 50_000_000
"""Where there could be more, those that occur are numbered anew."""

_DAY = 86_400.0


@dataclass(frozen=True)
class FileStream:
    """Messages of files, in the order of their times, or of the files if they have none."""

    path: str
    format: str
    name: str
    messages: int
    seconds: float = _DAY
    """How long the stream lasts; messages without times come at a steady rate."""
    key: str | None = None
    time: str | None = None
    on_malformed: OnMalformed = "stop"
    seed: int = 0

    @classmethod
    def of(
        cls,
        path: str | Path,
        format: str,  # noqa: A002 - what everybody calls it
        *,
        key: str | None = None,
        time: str | None = None,
        on_malformed: OnMalformed = "stop",
        most: int | None = None,
    ) -> "FileStream":
        """The stream of these files, or of their first messages."""
        loaded = _load(str(path), format, key, time, on_malformed)
        times = _times(loaded)
        messages = min(loaded.messages.num_rows, most or loaded.messages.num_rows)
        if messages < 2:
            raise ValueError(f"a stream needs two messages at least, {str(path)!r} has {messages}")
        seconds = _DAY
        if times is not None:
            seconds = float(times[messages - 1] - times[0]) * messages / (messages - 1)
            if seconds == 0:
                raise ValueError(f"all messages of {str(path)!r} have the same time")
        name = Path(path).name.split(".")[0]
        return cls(str(path), format, name, messages, seconds, key, time, on_malformed)

    @property
    def malformed(self) -> int:
        """Lines that were no messages."""
        return _load(self.path, self.format, self.key, self.time, self.on_malformed).malformed

    def open(self) -> ArrayStream:
        """The messages, their keys numbered by how often they occur, the hottest 0."""
        loaded = _load(self.path, self.format, self.key, self.time, self.on_malformed)
        column = loaded.messages["key"].combine_chunks()
        if pa.types.is_nested(column.type):
            raise ValueError(f"keys of type {column.type} cannot be simulated; name another column")
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
    """The messages of a stream, in memory unless there are too many."""
    if isinstance(stream, FileStream):
        return stream.open()
    is_wide = stream.keys > _MOST_KEYS
    if stream.messages > _IN_MEMORY:
        if is_wide:
            raise ValueError(
                f"{stream.messages:,} messages of {stream.name} have too many keys to simulate; "
                f"take a fraction with at most {_IN_MEMORY:,} messages"
            )
        return stream
    chunks = list(stream.chunks())
    keys = np.concatenate([chunk.keys for chunk in chunks])
    if is_wide:  # number those that occur, in the same order
        keys = np.unique(keys, return_inverse=True)[1].astype(np.uint32)
    return ArrayStream(keys, np.concatenate([chunk.times for chunk in chunks]))


@lru_cache(maxsize=4)
def hottest_key(stream: InputStream) -> int:
    """The key that most messages have."""
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
    """The times of the messages, rising; None if they have none."""
    column = loaded.messages["time"]
    if column.null_count or not len(column):
        return None
    return np.sort(_raw_times(loaded))
