"""Run a stream for ten minutes and kill its executors and driver at random: `make soak`.

Files arrive all the time. In the second half only executors are killed. Then some micro-batches run
undisturbed, in which memory, descriptors and threads must not grow. At the end the count and the
sum of every key must be exact.

With `--batches 1000` nothing is killed: 1,000 small files exist from the start, one for each
micro-batch, and Spark reads them as fast as it can.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark
from rich.console import Console

from benchmarks.soak.job import WORKERS
from benchmarks.soak.processes import Process, below
from benchmarks.soak.watching import MEASURES, Watch
from benchmarks.timing import table
from steelyard.datasets import zipf_ranks

_ROWS, _EVERY = 20_000, 2.0
"""Rows in a file, and seconds between two files."""

_FEW = 500
"""Rows in a file with `--batches`."""

_UNDISTURBED = 80
"""Micro-batches in which growth is measured; also the smallest allowed `--batches`."""

_INTERVAL = 2.0
"""Seconds between two measurements."""

_PATIENCE = 300.0
"""Largest number of seconds for a micro-batch, and for the last files."""


@dataclass
class Soak:
    """A stream, its driver, and the numbers of killed processes."""

    folder: Path
    placement: str
    master: str
    files_per_batch: int
    rows: int
    with_control: bool
    console: Console
    chance: random.Random
    files: int = 0
    killed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    watch: Watch = field(default_factory=Watch)
    driver: subprocess.Popen[bytes] | None = None

    @property
    def batches(self) -> int:
        """The number of written micro-batches."""
        return len(list((self.folder / "out").glob("*")))

    def start(self) -> None:
        """Start the driver."""
        command = [sys.executable, "-m", "benchmarks.soak.job", self.placement, str(self.folder)]
        command += [self.master, str(self.files_per_batch)]
        command += [str(self.folder / "control") if self.with_control else ""]
        with (self.folder / "log").open("ab") as log:
            self.driver = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def stop(self) -> None:
        """Kill the driver and all its processes."""
        if self.driver is not None and self.driver.poll() is None:
            for process in self.processes():  # executors have sessions of their own
                os.kill(process.pid, signal.SIGKILL)
            self.driver.wait()

    def processes(self) -> list[Process]:
        """Return the driver and all processes that it has started."""
        assert self.driver is not None
        return below(self.driver.pid)

    def add_file(self) -> None:
        """Add a file with a rename, so that the stream never reads half a file."""
        ranks = zipf_ranks(self.rows, 1.2, 5000, self.files)
        ids = np.arange(self.files * self.rows, (self.files + 1) * self.rows)
        rows = pa.table({"page": np.char.add("page-", ranks.astype(str)), "id": ids})
        hidden = self.folder / f".{self.files}"
        pq.write_table(rows, hidden)
        hidden.rename(self.folder / "in" / f"{self.files:06}.parquet")
        self.files += 1

    def kill_one(self, drivers_too: bool) -> None:
        """Kill an executor; with `drivers_too`, one time in three the driver with its processes."""
        executors = [process for process in self.processes() if process.kind == "executor"]
        if drivers_too and self.chance.random() < 1 / 3:
            self.stop()
            self.start()
            self.killed["driver"] += 1
        elif executors:
            os.kill(self.chance.choice(executors).pid, signal.SIGKILL)
            self.killed["executor"] += 1

    def start_again_if_over(self) -> None:
        """Start the query again if the death of an executor has ended it, as a user would."""
        assert self.driver is not None
        if self.driver.poll() is not None:
            self.killed["query ended by itself"] += 1
            self.start()

    def is_exact(self) -> bool:
        """Whether the newest results of all keys are exact."""
        rows = pq.read_table(self.folder / "in")
        truth = rows.group_by("page").aggregate([([], "count_all"), ("id", "sum")])
        written = pa.concat_tables(
            pq.read_table(file, partitioning=None) for file in self.folder.glob("out/*/*.parquet")
        )
        # Both only grow: the newest result of a key is its largest.
        columns = [("count", "max"), ("sum(id)", "max")]
        found = written.group_by("page").aggregate(columns)
        both = [sorted(zip(*t.to_pydict().values(), strict=True)) for t in (truth, found)]
        self.console.print(
            f"{rows.num_rows:,} messages, {pc.sum(found['count_max']).as_py():,} counted, "
            f"{truth.num_rows:,} keys"
        )
        return both[0] == both[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--batches", type=int, default=None, help="micro-batches, instead of minutes and kills"
    )
    parser.add_argument("--placement", default="delegated", choices=["delegated", "pull"])
    parser.add_argument("--master", default=f"local-cluster[{WORKERS},1,1024]")
    parser.add_argument("--no-control", action="store_true", help="for pull: no control path")
    parser.add_argument("--kill-every", type=float, default=45.0, help="seconds, on average")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--usage", type=Path, default=None, help="CSV file for all measurements")
    given = parser.parse_args()
    if given.batches is not None and given.batches < _UNDISTURBED:
        parser.error(f"--batches must be at least {_UNDISTURBED}, got {given.batches}")
    console = Console(width=120)
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    console.print(f"{given.placement}, {given.master}, Spark {pyspark.__version__}, seed {seed}")
    per_batch, rows = (20, _ROWS) if given.batches is None else (1, _FEW)
    with tempfile.TemporaryDirectory(prefix="steelyard-soak-") as made:
        chance = random.Random(seed)  # noqa: S311
        soak = Soak(
            folder=Path(made),
            placement=given.placement,
            master=given.master,
            files_per_batch=per_batch,
            rows=rows,
            with_control=not given.no_control,
            console=console,
            chance=chance,
        )
        (soak.folder / "in").mkdir()
        for _ in range(given.batches or 1):
            soak.add_file()
        soak.start()
        try:
            if given.batches is None:
                _disturb(soak, given.minutes * 60, given.kill_every)
                _watch(soak, soak.batches + _UNDISTURBED, _EVERY)
            else:
                _watch(soak, given.batches, None)
            is_over = _ends(soak)
        finally:
            soak.stop()
        kills = ", ".join(f"{count} x {name}" for name, count in soak.killed.items())
        console.print(f"{soak.files} files, {soak.batches} micro-batches; killed: {kills or 0}")
        is_exact = is_over and soak.is_exact()
        if not is_over:
            console.print((soak.folder / "log").read_text()[-2000:], markup=False)
    if given.usage is not None:
        soak.watch.write(given.usage)
    if not is_over:
        console.print(f"[red]A micro-batch or the last files took more than {_PATIENCE:g} s.")
    else:
        console.print("Every total is exact." if is_exact else "[red]Totals are wrong.")
    has_ended = given.batches is not None and bool(soak.killed)
    if has_ended:
        console.print("[red]The query ended by itself, although no process was killed.")
    is_flat = is_over and _show_growth(soak.watch, console)
    return 0 if is_exact and is_flat and not has_ended else 1


def _disturb(soak: Soak, seconds: float, kill_every: float) -> None:
    begin = time.time()
    next_file, next_kill = begin, begin + kill_every
    while (now := time.time()) < begin + seconds:
        if now >= next_file:
            soak.add_file()
            next_file = now + _EVERY
        if now >= next_kill:
            soak.kill_one(drivers_too=now < begin + seconds / 2)
            next_kill = now + soak.chance.uniform(0.4, 1.6) * kill_every
            soak.console.print(
                f"  {now - begin:.0f} s: {soak.batches} micro-batches, killed {dict(soak.killed)}",
                style="dim",
            )
        soak.start_again_if_over()
        time.sleep(0.1)


def _watch(soak: Soak, until: int, every: float | None) -> None:
    """Measure until `until` micro-batches are written, or there is no progress.

    A file arrives every `every` seconds, unless it is None.
    """
    begin = progressed = time.time()
    next_file, done = begin, soak.batches
    while soak.batches < until and time.time() < progressed + _PATIENCE:
        soak.watch.measure(soak.batches, soak.processes())
        if every is not None and time.time() >= next_file:
            soak.add_file()
            next_file += every
        if soak.batches > done:
            progressed = time.time()
            if soak.batches // 100 > done // 100:
                soak.console.print(f"  {progressed - begin:.0f} s: {soak.batches} micro-batches")
            done = soak.batches
        soak.start_again_if_over()
        time.sleep(_INTERVAL)


def _ends(soak: Soak) -> bool:
    """Whether the query reads the last files within `_PATIENCE`."""
    (soak.folder / "last").write_text(str(soak.files))
    end = time.time() + _PATIENCE
    assert soak.driver is not None
    while soak.driver.poll() != 0 and time.time() < end:
        soak.start_again_if_over()
        time.sleep(0.5)
    return soak.driver.poll() == 0


def _show_growth(watch: Watch, console: Console) -> bool:
    """Show the usage of each kind of process, and return whether no usage has grown."""
    title = "Undisturbed: maximum of the first half -> median of the last quarter"
    shown = table(title, "process", *MEASURES)
    grown = watch.growth()
    for kind, measures in grown.items():
        shown.add_row(kind, *(f"{it.early:.0f} -> {it.late:.0f}" for it in measures))
    console.print(shown)
    bad = [it for measures in grown.values() for it in measures if not it.is_allowed]
    for it in bad:
        change = f"{it.early:.0f} -> {it.late:.0f}"
        console.print(f"[red]The {it.measure} of the {it.kind} have grown: {change}.")
    return not bad


if __name__ == "__main__":
    sys.exit(main())
