"""The result of a run: a row of results.csv."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

from steelyard.control.history import Slot, quantile_of


@dataclass(frozen=True)
class RunResult:
    """The result of one run. Times are in seconds; a value that was not measured is None."""

    scheme: str
    placement: str
    delay: float
    """Service time of a message on a worker of speed 1, in milliseconds."""
    hetero: str
    """no, sleep (slow workers sleep longer), executors (slow ones are paused) or changing."""
    seed: int
    throughput: float | None = None
    """Messages per second of wall-clock time."""
    limit: float | None = None
    """Total capacity of all workers, in messages per second."""
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    copies: float | None = None
    """Number of workers or tasks that hold a key, on average."""
    state_bytes: float | None = None
    """Bytes of the partial results of all workers."""
    data: str = "tw"
    offered: float | None = None
    """Offered messages per second, if latency was measured."""
    working: float | None = None
    """Messages per second of processing time: from the first worker's start to the last one's
    end."""
    used: float | None = None
    """Efficiency while the busiest worker is busy, if each worker has its own machine."""
    imbalance: float | None = None
    """Longest busy time of a worker over the mean busy time, minus 1."""
    converged: float | None = None
    """Slots until 95 % of the final efficiency."""
    messages: int = 0
    """Messages of a micro-batch."""

    @property
    def run(self) -> tuple[object, ...]:
        """The values that identify a run."""
        kind = "latency" if self.offered is not None else "throughput"
        return (self.scheme, self.delay, self.hetero, self.seed, self.data, kind)

    @property
    def share(self) -> float | None:
        """Efficiency in wall-clock time: throughput as a share of the total capacity."""
        if self.throughput is None or not self.limit:
            return None
        return self.throughput / self.limit

    @property
    def working_share(self) -> float | None:
        """Efficiency in processing time, without Spark's time before and after it."""
        return self.working / self.limit if self.working is not None and self.limit else None


class ResultTable:
    """The results in a folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "results.csv"
        self.rows: list[RunResult] = list(_read(self._path))

    def find(self, result: RunResult) -> RunResult | None:
        """Return the result of the same run, if the folder holds it."""
        return next((row for row in self.rows if row.run == result.run), None)

    def add(self, result: RunResult) -> None:
        """Append a result to the file."""
        self.rows.append(result)
        names = [field.name for field in fields(RunResult)]
        is_new = not self._path.exists()
        with self._path.open("a", newline="") as file:
            writer = csv.DictWriter(file, names)
            if is_new:
                writer.writeheader()
            writer.writerow(asdict(result))


class SlotSeries:
    """Slots of runs in which the slow workers change: series.csv has one run per strategy."""

    NAMES = ("scheme", "slot", "seconds", "of_limit_by_clock", "of_limit_at_work")

    def __init__(self, folder: Path) -> None:
        self._path = folder / "series.csv"

    def put(self, scheme: str, slots: Sequence[Slot], limit: float) -> None:
        """Replace the slots of a strategy."""
        others = [row for row in self.rows() if row["scheme"] != scheme]
        with self._path.open("w", newline="") as file:
            writer = csv.DictWriter(file, self.NAMES)
            writer.writeheader()
            writer.writerows(others)
            for number, slot in enumerate(slots, 1):
                shares = [slot.messages / s / limit for s in (slot.seconds, slot.working)]
                values = (scheme, number, slot.seconds, *shares)
                writer.writerow(dict(zip(self.NAMES, values, strict=True)))

    def rows(self) -> list[dict[str, str]]:
        if not self._path.exists():
            return []
        with self._path.open(newline="") as file:
            return list(csv.DictReader(file))


def _read(path: Path) -> Iterable[RunResult]:
    if not path.exists():
        return
    texts = {"scheme", "placement", "hetero", "data"}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            values: dict[str, object] = {}
            for name, text in row.items():
                if name in texts:
                    values[name] = text
                elif name in ("seed", "messages"):
                    values[name] = int(text)
                else:
                    values[name] = float(text) if text else None
            yield RunResult(**values)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Measures:
    """Measures of some slots of one run."""

    slots: Sequence[Slot]
    limit: float

    @property
    def throughput(self) -> float:
        """Messages per second of wall-clock time."""
        return sum(s.messages for s in self.slots) / sum(s.seconds for s in self.slots)

    @property
    def working(self) -> float:
        """Messages per second of processing time."""
        return sum(s.messages for s in self.slots) / sum(s.working for s in self.slots)

    @property
    def efficiency(self) -> list[float]:
        """For each slot: throughput while the busiest worker is busy, over the total capacity."""
        return [
            slot.messages / slot.busiest / self.limit if slot.busiest else 0.0
            for slot in self.slots
        ]

    @property
    def imbalance(self) -> float:
        return median(slot.imbalance for slot in self.slots)

    @property
    def held(self) -> tuple[float, float]:
        """The number of key copies with partial results, and their bytes."""
        keys = median(sum(w.keys for w in slot.workers) for slot in self.slots)
        size = median(sum(w.bytes for w in slot.workers) for slot in self.slots)
        return keys, size

    def latency(self, quantile: float) -> float | None:
        return quantile_of(self.slots, quantile)


def slots_until(shares: Sequence[float], least: float = 0.95) -> int:
    """Return the first slot from which on all shares are at least `least` times the last share.

    >>> slots_until([0.4, 0.8, 0.97, 0.96, 0.98])
    3
    """
    good = [share >= least * shares[-1] for share in shares]
    return len(good) - next((i for i, ok in enumerate(reversed(good)) if not ok), len(good)) + 1
