"""Ten minutes of a stream whose executors and driver are killed at random: `make soak`.

Files arrive all the time. At the end every key's count and sum must be exact. In the second half
only executors are killed, so that the memory of the driver can be seen to stay what it is.
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
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from benchmarks.soak.processes import Process, below
from benchmarks.timing import table
from steelyard.datasets import zipf_ranks

_ROWS, _EVERY = 20_000, 2.0
"""Rows in a file, and seconds from one to the next."""

_ENDING = 300.0
"""Seconds that the last files may take."""

_GROWTH = 1.25
"""So much more memory may be used at the end than in the middle."""


@dataclass
class Soak:
    """A stream, its driver, and who of it was killed."""

    folder: Path
    placement: str
    console: Console
    chance: random.Random
    files: int = 0
    killed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    memory: list[tuple[float, str, float]] = field(default_factory=list)
    driver: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "benchmarks.soak.job", self.placement, str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self.driver = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def stop(self) -> None:
        if self.driver is not None and self.driver.poll() is None:
            for process in self.processes():  # executors have sessions of their own
                os.kill(process.pid, signal.SIGKILL)
            self.driver.wait()

    def processes(self) -> list[Process]:
        assert self.driver is not None
        return below(self.driver.pid)

    def add_file(self) -> None:
        ranks = zipf_ranks(_ROWS, 1.2, 5000, self.files)
        ids = np.arange(self.files * _ROWS, (self.files + 1) * _ROWS)
        rows = pa.table({"page": np.char.add("page-", ranks.astype(str)), "id": ids})
        hidden = self.folder / f".{self.files}"
        pq.write_table(rows, hidden)
        hidden.rename(self.folder / "in" / f"{self.files:06}.parquet")
        self.files += 1

    def kill_somebody(self, drivers_too: bool) -> None:
        """An executor; or, one time in three, the driver with all that is below it."""
        executors = [process for process in self.processes() if process.kind == "executor"]
        if drivers_too and self.chance.random() < 1 / 3:
            self.stop()
            self.start()
            self.killed["driver"] += 1
        elif executors:
            os.kill(self.chance.choice(executors).pid, signal.SIGKILL)
            self.killed["executor"] += 1

    def start_again_if_over(self) -> None:
        """A query that an executor's death ended is started again, as its owner would."""
        assert self.driver is not None
        if self.driver.poll() is not None:
            self.killed["query ended by itself"] += 1
            self.start()

    def weigh(self, at: float) -> None:
        """The largest process of each kind: how many there are depends on who was killed."""
        largest: dict[str, float] = defaultdict(float)
        for process in self.processes():
            largest[process.kind] = max(largest[process.kind], process.megabytes)
        self.memory += [(at, kind, size) for kind, size in largest.items()]

    def is_exact(self) -> bool:
        """Whether what was written last of every key is the truth."""
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
    parser.add_argument("--placement", default="delegated", choices=["delegated", "pull"])
    parser.add_argument("--kill-every", type=float, default=45.0, help="seconds, on average")
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    console = Console(width=120)
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    console.print(f"{given.placement}, seed {seed}")
    with tempfile.TemporaryDirectory(prefix="steelyard-soak-") as made:
        chance = random.Random(seed)  # noqa: S311
        soak = Soak(Path(made), given.placement, console, chance)
        (soak.folder / "in").mkdir()
        soak.add_file()
        soak.start()
        try:
            _disturb(soak, given.minutes * 60, given.kill_every)
            (soak.folder / "last").write_text(str(soak.files))
            end = time.time() + _ENDING
            assert soak.driver is not None
            while soak.driver.poll() != 0 and time.time() < end:
                soak.start_again_if_over()
                time.sleep(0.5)
            is_over = soak.driver.poll() == 0
        finally:
            soak.stop()
        batches = len(list((soak.folder / "out").glob("*")))
        kills = ", ".join(f"{count} x {name}" for name, count in soak.killed.items())
        console.print(f"{soak.files} files, {batches} micro-batches; killed: {kills or 'nobody'}")
        is_exact = is_over and soak.is_exact()
        is_flat = _show_memory(soak.memory, console)
    if not is_over:
        console.print(f"[red]The last files were not read within {_ENDING:g} s.")
    else:
        console.print("Every total is exact." if is_exact else "[red]Totals are wrong.")
    if not is_flat:
        console.print(f"[red]Memory has grown by more than {_GROWTH:g} times.")
    return 0 if is_exact and is_flat else 1


def _disturb(soak: Soak, seconds: float, kill_every: float) -> None:
    begin = time.time()
    next_file, next_kill, next_look = begin, begin + kill_every, begin + 30
    while (now := time.time()) < begin + seconds:
        if now >= next_file:
            soak.add_file()
            next_file = now + _EVERY
        if now >= next_kill:
            soak.kill_somebody(drivers_too=now < begin + seconds / 2)
            next_kill = now + soak.chance.uniform(0.4, 1.6) * kill_every
            batches = len(list((soak.folder / "out").glob("*")))
            soak.console.print(
                f"  {now - begin:.0f} s: {batches} micro-batches, killed {dict(soak.killed)}",
                style="dim",
            )
        if now >= next_look:
            soak.weigh((now - begin) / seconds)
            next_look = now + 3
        soak.start_again_if_over()
        time.sleep(0.1)


def _show_memory(samples: list[tuple[float, str, float]], console: Console) -> bool:
    """A table, and whether memory is as much at the end as after the last death of a driver."""
    title = "Memory (MB) of the largest process of each kind, medians"
    shown = table(title, "of", "60 to 75 % of the time", "the last 15 %", "")
    is_flat = True
    for kind in sorted({kind for _, kind, _ in samples}):
        middle = [size for at, of, size in samples if of == kind and 0.6 < at < 0.75]
        end = [size for at, of, size in samples if of == kind and at > 0.85]
        if middle and end:
            growth = median(end) / median(middle)
            is_flat = is_flat and growth <= _GROWTH
            shown.add_row(kind, f"{median(middle):.0f}", f"{median(end):.0f}", f"{growth:.2f}")
    console.print(shown)
    return is_flat


if __name__ == "__main__":
    sys.exit(main())
