"""Measure consistent grouping on streams: `python -m benchmarks.streaming [NAME ...]`.

Workers sleep for the service time of each message, so that two cores can emulate eight machines.
The floor is the time of a micro-batch without work.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.spark.bench import show
from benchmarks.streaming.change import change
from benchmarks.streaming.control import control
from benchmarks.streaming.overhead import overhead
from benchmarks.streaming.running import Bench
from benchmarks.streaming.steady import steady

PARTS = {"control": control, "overhead": overhead, "steady": steady, "change": change}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PARTS), metavar="NAME", help=str([*PARTS]))
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="seconds of work in a micro-batch"
    )
    given = parser.parse_args()
    for name in given.names:
        if name not in PARTS:
            parser.error(f"unknown benchmark {name!r}; use one of: {', '.join(PARTS)}")
    console = Console(width=160)
    with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder:
        bench = Bench(Path(folder), given.seconds, console)
        show(console, {name: partial(PARTS[name], bench) for name in given.names})
    return 0


if __name__ == "__main__":
    sys.exit(main())
