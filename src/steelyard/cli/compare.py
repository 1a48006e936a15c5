"""`steelyard compare`: every scheme on one stream."""

from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from rich.text import Text

from steelyard.cli.console import console, progress_bar, refuse, require_packages
from steelyard.cli.options import CLUSTER, INPUT, Seed, Skew, option

if TYPE_CHECKING:
    from steelyard.comparison import SchemeResult


def compare(
    skew: Skew = 1.0,
    messages: Annotated[int, option(INPUT, "Messages to route.")] = 5_000_000,
    seed: Seed = 0,
    workers: Annotated[int, option(CLUSTER, "Workers to spread the messages over.")] = 100,
) -> None:
    """Route a skewed stream by every grouping scheme and compare them."""
    require_packages("a comparison", "schemes", "numba")
    # Late, so that --help and --version do not wait for the compiler.
    from steelyard import comparison, schemes

    with progress_bar() as progress:
        bar = progress.add_task("Making the stream", total=len(schemes.names()))
        outcomes = []
        try:
            compared = comparison.compare(skew=skew, workers=workers, messages=messages, seed=seed)
        except ValueError as error:
            refuse(error)
        progress.update(bar, description="Routing by each scheme")
        for outcome in compared:
            outcomes.append(outcome)
            progress.advance(bar)
    console.print(_comparison_table(outcomes, skew, workers, messages))
    console.print(
        "imbalance: how far the most loaded worker is above the mean · memory: keys held by all "
        "workers, per different key · copies: workers that hold the hottest key",
        style="dim",
    )
    console.print(
        Text.assemble(
            "kg and pkg save memory and overload a worker; sg, potc and wchoices spread every hot "
            "key over all workers; ",
            ("porc", "bold"),
            " (power of random choices, the paper's) and ",
            ("porc-graded", "bold"),
            " (ours) keep both low.",
        ),
        style="dim",
    )


def _comparison_table(
    outcomes: "list[SchemeResult]", skew: float, workers: int, messages: int
) -> Table:
    table = Table(title=f"{messages:,} messages, Zipf {skew:g}, {workers:,} workers")
    table.add_column("scheme")
    for name in ("imbalance", "memory", "copies", "M messages/s"):
        table.add_column(name, justify="right")
    for outcome in outcomes:
        ours = outcome.scheme.startswith("porc")
        table.add_row(
            outcome.scheme,
            f"{outcome.imbalance:.4f}",
            f"{outcome.memory:.2f}",
            f"{outcome.hottest_copies:,}",
            f"{outcome.messages_per_second / 1e6:.1f}",
            style="bold" if ours else None,
        )
    return table
