"""Run all benchmarks, or the named ones: `python -m benchmarks [NAME ...]`."""

import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks import aggregators, delegation, hashing, planning, schemes, simulator

BENCHMARKS: dict[str, Callable[[], list[Table]]] = {
    "hashing": hashing.run,
    "schemes": schemes.run,
    "planning": planning.run,
    "aggregators": aggregators.run,
    "delegation": delegation.run,
    "simulator": simulator.run,
}


def main(names: list[str]) -> int:
    console, errors = Console(width=100), Console(stderr=True)
    for name in names:
        if name not in BENCHMARKS:
            errors.print(f"no benchmark is named {name!r}; choose from: {', '.join(BENCHMARKS)}")
            return 2
    for name in names or BENCHMARKS:
        with errors.status(f"measuring {name}"):
            tables = BENCHMARKS[name]()
        for table in tables:
            console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
