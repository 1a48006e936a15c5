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
from benchmarks.spark.repartition import repartition
from benchmarks.spark.work import work

PARTS = {"repartition": repartition, "map_arrow": map_arrow, "work": work, "join": join}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PARTS), metavar="NAME", help=str([*PARTS]))
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repetitions", type=int, default=2)
    given = parser.parse_args()
    for name in given.names:
        if name not in PARTS:
            parser.error(f"there is no benchmark {name!r}; the benchmarks are {', '.join(PARTS)}")
    console = Console(width=160)
    with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder:
        bench = Bench(Path(folder), given.rows, given.repetitions)
        show(console, {name: partial(PARTS[name], bench) for name in given.names})
    return 0


if __name__ == "__main__":
    sys.exit(main())
