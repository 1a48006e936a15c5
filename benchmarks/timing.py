"""Time contestants fairly: warmed up, interleaved, the best of several rounds."""

import time
from collections.abc import Callable, Mapping

from rich.table import Table


def best_seconds(
    contestants: Mapping[str, Callable[[], object]], rounds: int = 3
) -> dict[str, float]:
    """The least time that each contestant took, in rounds of one run each."""
    for contestant in contestants.values():
        contestant()
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, contestant in contestants.items():
            begin = time.perf_counter()
            contestant()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def table(title: str, *columns: str) -> Table:
    """A table whose first column is text and whose others are numbers."""
    made = Table(title=title, title_justify="left")
    made.add_column(columns[0])
    for column in columns[1:]:
        made.add_column(column, justify="right")
    return made
