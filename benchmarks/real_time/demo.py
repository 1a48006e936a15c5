"""Compare key grouping and consistent grouping in real-time mode, with a live page.

`python -m benchmarks.real_time.demo` starts a broker and Spark on this machine. Three of ten
messages have one key, and two of eight workers have 30 % of the speed of the others. The page shows
the workers of both queries and the percentiles of their latencies.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.live import Live
from rich.table import Table

import steelyard as sy
from benchmarks.real_time.running import Bench, Group, Load, Messages, balanced, local, work
from steelyard.control.controller import Controller
from steelyard.control.history import History, Slot, quantile_of
from steelyard.dashboard.runs import ShownRun
from steelyard.dashboard.server import DashboardServer
from steelyard.spark.streaming.real_time_stream import RealTimeStream

_WORKERS, _SLOW = 8, 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=150.0, help="the length of the demo")
    parser.add_argument("--port", type=int, default=0, help="the port of the page")
    given = parser.parse_args()
    console = Console(width=100)
    console.print("Starting a broker and Spark ...")
    with (
        tempfile.TemporaryDirectory(prefix="steelyard-demo-") as folder,
        local(Path(folder), console) as bench,
    ):
        compare(bench, given.seconds, given.port)
    return 0


def compare(bench: Bench, seconds: float, port: int) -> None:
    """Run both queries at once, and show them until the time is over."""
    rate = 1.1 * Load(_WORKERS, 0, 0).limit_by_key
    load = Load(_WORKERS, rate, seconds, _SLOW)
    groups: dict[str, Group] = {
        "key grouping": by_first_choice(_SLOW),
        "consistent grouping": balanced(_SLOW),
    }
    topics = {name: bench.topic("given") for name in groups}
    started = {name: bench.start(topics[name], load, group) for name, group in groups.items()}
    histories = {name: history for name, (_, _, history) in started.items()}
    runs = [ShownRun(name, history) for name, history in histories.items()]
    with (
        DashboardServer(runs, port) as server,
        Messages(bench.servers, list(topics.values()), load),
        Live(console=bench.console, refresh_per_second=1) as live,
    ):
        bench.console.print(f"The page is {server.url}")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            live.update(_table(rate, histories))
            time.sleep(1)
    for query, _, _ in started.values():
        query.stop()


def by_first_choice(slow: int) -> Group:
    """Group by the first choice of every key, like key grouping, with a history."""

    def group(
        stream: DataFrame, workers: int, folder: Path
    ) -> tuple[DataFrame, Callable[[], list[Slot]]]:
        planned = sy.group_stream(
            stream, "key", workers=workers, placement=sy.RealTime(), control=folder / "control"
        )
        # A controller without a control path publishes no plan, so nothing changes.
        fixed = partial(Controller, workers, 1, delegation=False)
        keyed = RealTimeStream(planned.stage, fixed)
        return keyed.select("key", "timestamp", work(slow)), keyed.history

    return group


def _table(rate: float, histories: dict[str, Callable[[], list[Slot]]]) -> Table:
    shown = Table(title=f"{rate:.0f} messages a second, {_WORKERS} workers, {_SLOW} of them slow")
    for name in ("grouped by", "batches", "p50", "p99", "p99 so far", "busiest / mean"):
        shown.add_column(name, justify="left" if name == "grouped by" else "right")
    for name, history in histories.items():
        slots = History(history())
        if not slots:
            shown.add_row(name, "0", *["–"] * 4)
            continue
        last = slots[-1]
        delays = (last.p50, last.p99, quantile_of(slots, 0.99))
        texts = ("–" if delay is None else f"{delay:.3g} s" for delay in delays)
        shown.add_row(name, f"{len(slots)}", *texts, f"{1 + last.imbalance:.2f}")
    return shown


if __name__ == "__main__":
    sys.exit(main())
