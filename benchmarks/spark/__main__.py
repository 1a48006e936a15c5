"""Steelyard on Spark against what Spark offers: `python -m benchmarks.spark [NAME ...]`.

Contestants take turns in one run, after a warm-up; read the ratios, machines are noisy.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from benchmarks.spark.bench import Bar, Bench
from benchmarks.spark.counting import map_arrow
from benchmarks.spark.join import join
from benchmarks.spark.repartition import repartition
from benchmarks.spark.work import work
from benchmarks.timing import table

PARTS = {"repartition": repartition, "map_arrow": map_arrow, "work": work, "join": join}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PARTS), metavar="NAME", help=str([*PARTS]))
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    for name in given.names:
        if name not in PARTS:
            parser.error(f"no benchmark {name!r}; there are: {', '.join(PARTS)}")
    console = Console(width=160)
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder:
        bench = Bench(Path(folder), given.rows, given.rounds)
        for name in given.names:
            begin = time.perf_counter()
            shown, found = PARTS[name](bench)
            bars += found
            console.print(shown)
            console.print(f"measured in {time.perf_counter() - begin:.0f} s")
    verdicts = table("What was asked for", "measure", "wanted", "measured", "")
    for bar in bars:
        verdict = "yes" if bar.is_cleared else "[red]no"
        verdicts.add_row(bar.measure, bar.wanted, f"{bar.value:.3f}", verdict)
    console.print(verdicts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
