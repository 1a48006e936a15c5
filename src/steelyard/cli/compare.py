"""`steelyard compare`: all grouping schemes on one stream."""

from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from rich.text import Text

from steelyard.cli.console import console, progress_bar, refuse, require_packages
from steelyard.cli.options import CLUSTER, INPUT, Seed, Skew, option
from steelyard.cli.own_schemes import Import

if TYPE_CHECKING:
    from steelyard.comparison import SchemeResult


def compare(
    skew: Skew = 1.0,
    messages: Annotated[int, option(INPUT, "Messages to route.")] = 5_000_000,
    seed: Seed = 0,
    workers: Annotated[int, option(CLUSTER, "Number of workers.")] = 100,
    modules: Import = None,
) -> None:
    """Route a skewed stream with every grouping scheme, and compare the results."""
    require_packages("a comparison", "schemes", "numba")
    # Imported late: --help and --version do not need the compiler.
    from steelyard import comparison, schemes

    with progress_bar() as progress:
        bar = progress.add_task("Generating the stream", total=len(schemes.names()))
        outcomes = []
        try:
            compared = comparison.compare(skew=skew, workers=workers, messages=messages, seed=seed)
        except ValueError as error:
            refuse(error)
        progress.update(bar, description="Routing with each scheme")
        for outcome in compared:
            outcomes.append(outcome)
            progress.advance(bar)
    console.print(_comparison_table(outcomes, skew, workers, messages))
    console.print(
        "imbalance: largest load over mean load, minus 1 · copies: number of workers that hold a "
        "key, on average and for the hottest key",
        style="dim",
    )
    console.print(
        Text.assemble(
            "kg and pkg have few copies but overload a worker; sg, potc and wchoices copy every "
            "hot key to all workers; ",
            ("porc", "bold"),
            " (power of random choices, from the paper) and ",
            ("porc-graded", "bold"),
            " (our variant) keep both imbalance and copies low.",
        ),
        style="dim",
    )


def _comparison_table(
    outcomes: "list[SchemeResult]", skew: float, workers: int, messages: int
) -> Table:
    table = Table(title=f"{messages:,} messages, Zipf {skew:g}, {workers:,} workers")
    table.add_column("scheme")
    for name in ("imbalance", "copies of a key", "copies of hottest", "M messages/s"):
        table.add_column(name, justify="right")
    for outcome in outcomes:
        is_bold = outcome.scheme.startswith("porc")
        table.add_row(
            outcome.scheme,
            f"{outcome.imbalance:.4f}",
            f"{outcome.memory:.2f}",
            f"{outcome.hottest_copies:,}",
            f"{outcome.messages_per_second / 1e6:.1f}",
            style="bold" if is_bold else None,
        )
    return table
