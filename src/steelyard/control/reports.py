"""What sources and workers tell about a micro-batch, with the completion of their tasks.

Reports are advice: they may come twice if an executor is lost, or not at all, and results never
depend on them.
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
"""Twenty for each power of ten, from 0.1 ms to 10^5 seconds; the last one takes the rest."""

_BINS_PER_TENFOLD = 20
_SHORTEST = 1e-4


@dataclass(frozen=True)
class SourceReport:
    """What a source task has sent: a part of a micro-batch."""

    batch: int
    source: int
    part: int
    counts: Weights = field(repr=False)
    """Messages, or their weights, by bucket."""
    hot: tuple[tuple[str, int], ...] = ()
    """Its most frequent keys, as text, with how often they came."""
    version: int = 0
    """The number of the control version that it followed; 0 if there was none."""

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
    """What a worker has done in a micro-batch."""

    batch: int
    worker: int
    rows: int
    busy: float
    """Seconds spent on messages."""
    keys: int = 0
    """Keys of which it holds partial results."""
    latencies: tuple[tuple[int, int], ...] = ()
    """Of its messages: pairs of a bin (see `latency_bins`) and the messages in it."""
    bytes: int = 0
    """The memory of these partial results."""
    began: float = 0.0
    """Seconds since 1970, by its machine's clock."""
    ended: float = 0.0

    def to_json(self) -> str:
        return json.dumps(astuple(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        batch, worker, rows, busy, keys, latencies, *rest = json.loads(text)
        return cls(batch, worker, rows, busy, keys, tuple((b, n) for b, n in latencies), *rest)


def latency_bins(seconds: NDArray[np.floating]) -> Counts:
    """Messages by bin of their latency."""
    steps = np.log10(np.maximum(seconds, _SHORTEST) / _SHORTEST) * _BINS_PER_TENFOLD
    bins = np.minimum(steps.astype(np.int64), LATENCY_BINS - 1)
    return np.bincount(bins, minlength=LATENCY_BINS)


def latency_quantile(bins: Counts, quantile: float) -> float | None:
    """The latency below which such a part of the messages are; None if none are.

    Messages of a bin, which is 12 % wide, are taken to be spread over it.

    >>> round(latency_quantile(latency_bins(np.linspace(1.0, 9.0, 1001)), 0.5), 1)
    5.0
    """
    total = int(bins.sum())
    if not total:
        return None
    until = bins.cumsum()
    place = int(np.searchsorted(until, quantile * total))
    inside = 1 - (until[place] - quantile * total) / bins[place]
    return float(_SHORTEST * 10 ** ((place + inside) / _BINS_PER_TENFOLD))
