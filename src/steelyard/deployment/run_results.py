"""What came of a run: a row of the table, as it is kept in results.csv."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

from steelyard.control.history import Slot, quantile_of


@dataclass(frozen=True)
class RunResult:
    """One run. Times are in seconds; what was not measured is None."""

    scheme: str
    placement: str
    delay: float
    """Milliseconds a message."""
    hetero: str
    """no, sleep (workers sleep longer), executors (paused for real) or changing."""
    seed: int
    throughput: float | None = None
    """Messages a second, by the clock."""
    limit: float | None = None
    """The sum of the workers' capacities."""
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    copies: float | None = None
    """Workers, or tasks, that hold a key, on average."""
    state_bytes: float | None = None
    """Of partial results, of all workers."""
    data: str = "tw"
    offered: float | None = None
    """Messages a second that came, where latency was measured."""
    working: float | None = None
    """Messages a second, from the first worker's beginning to the last one's end."""
    used: float | None = None
    """Of the limit, while the busiest worker is busy; where each worker has a machine."""
    imbalance: float | None = None
    converged: float | None = None
    """Slots until 95 % of what is used in the end."""
    messages: int = 0
    """Of a micro-batch."""

    @property
    def run(self) -> tuple[object, ...]:
        """What tells runs apart."""
        kind = "latency" if self.offered is not None else "throughput"
        return (self.scheme, self.delay, self.hetero, self.seed, self.data, kind)

    @property
    def share(self) -> float | None:
        """Of the limit, by the clock."""
        if self.throughput is None or not self.limit:
            return None
        return self.throughput / self.limit

    @property
    def working_share(self) -> float | None:
        """Of the limit, while workers work: without what Spark needs before and after."""
        return self.working / self.limit if self.working is not None and self.limit else None


class ResultTable:
    """The results in a folder; a run that it holds is not run again."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "results.csv"
        self.rows: list[RunResult] = list(_read(self._path))

    def find(self, result: RunResult) -> RunResult | None:
        """Return the result of the same run, if the folder holds it."""
        return next((row for row in self.rows if row.run == result.run), None)

    def add(self, result: RunResult) -> None:
        """Write a result at once."""
        self.rows.append(result)
        names = [field.name for field in fields(RunResult)]
        is_new = not self._path.exists()
        with self._path.open("a", newline="") as file:
            writer = csv.DictWriter(file, names)
            if is_new:
                writer.writeheader()
            writer.writerow(asdict(result))


class SlotSeries:
    """Slots while the slow workers change, in series.csv: the last run of each strategy."""

    NAMES = ("scheme", "slot", "seconds", "of_limit_by_clock", "of_limit_at_work")

    def __init__(self, folder: Path) -> None:
        self._path = folder / "series.csv"

    def put(self, scheme: str, slots: Sequence[Slot], limit: float) -> None:
        """Write the slots of a strategy in place of its earlier ones."""
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
    """Numbers of some slots of one run."""

    slots: Sequence[Slot]
    limit: float

    @property
    def throughput(self) -> float:
        """Messages a second, by the clock."""
        return sum(s.messages for s in self.slots) / sum(s.seconds for s in self.slots)

    @property
    def working(self) -> float:
        """Messages a second, while workers work."""
        return sum(s.messages for s in self.slots) / sum(s.working for s in self.slots)

    @property
    def used(self) -> list[float]:
        """Of the limit while the busiest worker is busy, slot by slot."""
        return [
            slot.messages / slot.busiest / self.limit if slot.busiest else 0.0
            for slot in self.slots
        ]

    @property
    def imbalance(self) -> float:
        return median(slot.imbalance for slot in self.slots)

    @property
    def held(self) -> tuple[float, float]:
        """Keys with partial results, each as often as it is held, and their bytes."""
        keys = median(sum(w.keys for w in slot.workers) for slot in self.slots)
        size = median(sum(w.bytes for w in slot.workers) for slot in self.slots)
        return keys, size

    def latency(self, quantile: float) -> float | None:
        return quantile_of(self.slots, quantile)


def slots_until(shares: Sequence[float], least: float = 0.95) -> int:
    """The number of the first slot from which on all have such a part of the last one's share.

    >>> slots_until([0.4, 0.8, 0.97, 0.96, 0.98])
    3
    """
    good = [share >= least * shares[-1] for share in shares]
    return len(good) - next((i for i, ok in enumerate(reversed(good)) if not ok), len(good)) + 1
