"""Measure consistent grouping in real-time mode: `python -m benchmarks.real_time [NAME ...]`.

It needs Spark 4.3. Workers sleep for the service time of each message, so that two cores can
emulate eight machines. Latencies are the differences of Kafka's own timestamps.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.real_time.measures import hot_key, limit
from benchmarks.real_time.running import local
from benchmarks.spark.bench import show

PARTS = {"hot-key": hot_key, "limit": limit}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PARTS), metavar="NAME", help=str([*PARTS]))
    parser.add_argument("--seconds", type=float, default=120.0, help="the length of a run")
    parser.add_argument("--workers", type=int, default=8, help="the number of workers")
    given = parser.parse_args()
    for name in given.names:
        if name not in PARTS:
            parser.error(f"unknown benchmark {name!r}; use one of: {', '.join(PARTS)}")
    console = Console(width=160)
    with (
        tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder,
        local(Path(folder), console) as bench,
    ):
        runs = {
            name: partial(PARTS[name], bench, given.workers, given.seconds) for name in given.names
        }
        show(console, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
