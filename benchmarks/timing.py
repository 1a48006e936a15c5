"""Time functions fairly: each is warmed up, runs alternate, and the best run counts."""

import time
from collections.abc import Callable, Mapping

from rich.table import Table


def best_seconds(
    contestants: Mapping[str, Callable[[], object]], repetitions: int = 3
) -> dict[str, float]:
    """Return the shortest time of each contestant, after this number of alternating runs."""
    for contestant in contestants.values():
        contestant()
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(repetitions):
        for name, contestant in contestants.items():
            begin = time.perf_counter()
            contestant()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def table(title: str, *columns: str) -> Table:
    """Return a table whose first column is text and whose other columns are numbers."""
    empty = Table(title=title, title_justify="left")
    empty.add_column(columns[0])
    for column in columns[1:]:
        empty.add_column(column, justify="right")
    return empty
