"""Compare Steelyard on Spark with Spark's own operations: `python -m benchmarks.spark [NAME ...]`.

The contestants take turns in one run, after a warm-up. Compare the ratios: absolute times vary.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.spark.bench import Bench, show
from benchmarks.spark.counting import map_arrow
from benchmarks.spark.join import join
from benchmarks.spark.mild_join import mild_join
from benchmarks.spark.repartition import repartition
from benchmarks.spark.versions import versions
from benchmarks.spark.work import work

PARTS = {
    "repartition": repartition,
    "map_arrow": map_arrow,
    "work": work,
    "join": join,
    "mild_join": mild_join,
}
SEPARATE = {"versions": versions}
"""Benchmarks that run only if they are named."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    known = PARTS | SEPARATE
    parser.add_argument("names", nargs="*", default=list(PARTS), metavar="NAME", help=str([*known]))
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repetitions", type=int, default=2)
    given = parser.parse_args()
    for name in given.names:
        if name not in known:
            parser.error(f"there is no benchmark {name!r}; the benchmarks are {', '.join(known)}")
    console = Console(width=160)
    with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder:
        bench = Bench(Path(folder), given.rows, given.repetitions)
        show(console, {name: partial(known[name], bench) for name in given.names})
    return 0


if __name__ == "__main__":
    sys.exit(main())
