"""The reports of sources and workers about a micro-batch, sent when their tasks complete.

Results never depend on reports. If an executor is lost, a report may arrive twice or never.
"""

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import astuple, dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Weights = NDArray[np.float32]

LATENCY_BINS = 181
"""Twenty bins for each power of ten, from 0.1 ms to 10^5 seconds, and one for longer latencies."""

_BINS_PER_TENFOLD = 20
_SHORTEST = 1e-4


@dataclass(frozen=True)
class SourceReport:
    """The messages of a micro-batch that a source task sent."""

    batch: int
    source: int
    part: int
    counts: Weights = field(repr=False)
    """The number of messages, or the sum of their weights, by bucket."""
    hot: tuple[tuple[str, int], ...] = ()
    """The most frequent keys of the source, as text, with their counts."""
    version: int = 0
    """The number of the control version that the source followed; 0 if there was none."""

    def to_json(self) -> str:
        packed = b64encode(zlib.compress(self.counts.astype("<f4").tobytes(), level=1)).decode()
        fields = [self.batch, self.source, self.part, packed, self.hot, self.version]
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        batch, source, part, packed, hot, version = json.loads(text)
        counts = np.frombuffer(zlib.decompress(b64decode(packed)), "<f4")
        return cls(batch, source, part, counts, tuple((key, count) for key, count in hot), version)


@dataclass(frozen=True)
class WorkerReport:
    """The work of a worker in a micro-batch."""

    batch: int
    worker: int
    rows: int
    busy: float
    """The seconds that the worker spent on messages."""
    keys: int = 0
    """The number of keys of which the worker holds partial states."""
    latencies: tuple[tuple[int, int], ...] = ()
    """Pairs of a latency bin (see `latency_bins`) and the messages in it."""
    bytes: int = 0
    """The memory of the partial states."""
    began: float = 0.0
    """The start of the work in seconds since 1970, by the clock of the worker's machine."""
    ended: float = 0.0
    """The end of the work, by the same clock."""
    held: int = 0
    """The number of partial states that stay with the worker after the micro-batch."""

    def to_json(self) -> str:
        return json.dumps(astuple(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        batch, worker, rows, busy, keys, latencies, *rest = json.loads(text)
        return cls(batch, worker, rows, busy, keys, tuple((b, n) for b, n in latencies), *rest)


def latency_bins(seconds: NDArray[np.floating]) -> Counts:
    """Return the number of messages in each latency bin."""
    steps = np.log10(np.maximum(seconds, _SHORTEST) / _SHORTEST) * _BINS_PER_TENFOLD
    bins = np.minimum(steps.astype(np.int64), LATENCY_BINS - 1)
    return np.bincount(bins, minlength=LATENCY_BINS)


def latency_of(latency_bin: int) -> float:
    """Return the middle of a latency bin, in seconds.

    >>> round(latency_of(int(latency_bins(np.array([2.0])).argmax())), 1)
    2.1
    """
    return float(_SHORTEST * 10 ** ((latency_bin + 0.5) / _BINS_PER_TENFOLD))


def latency_quantile(bins: Counts, quantile: float) -> float | None:
    """Return a quantile of the latency; None if there are no messages.

    The messages of a bin, which is 12 % wide, are assumed to be spread evenly over it.

    >>> round(latency_quantile(latency_bins(np.linspace(1.0, 9.0, 1001)), 0.5), 1)
    5.0
    """
    total = int(bins.sum())
    if not total:
        return None
    until = bins.cumsum()
    index = int(np.searchsorted(until, quantile * total))
    inside = 1 - (until[index] - quantile * total) / bins[index]
    return float(_SHORTEST * 10 ** ((index + inside) / _BINS_PER_TENFOLD))
