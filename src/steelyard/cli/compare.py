"""`steelyard compare`: all grouping schemes on one stream."""

from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table
from rich.text import Text

from steelyard.cli.console import console, progress_bar, refuse, require_packages
from steelyard.cli.options import (
    CLUSTER,
    INPUT,
    InputFile,
    InputFormat,
    InputKey,
    OnMalformed,
    Seed,
    Skew,
    is_on_command_line,
    option,
)
from steelyard.cli.own_schemes import Import
from steelyard.validation import require_whole

if TYPE_CHECKING:
    from steelyard.comparison import SchemeResult
    from steelyard.datasets import loading


def compare(
    context: typer.Context,
    skew: Skew = 1.0,
    messages: Annotated[int, option(INPUT, "Messages to route.")] = 5_000_000,
    seed: Seed = 0,
    input: InputFile = None,  # noqa: A002 - the option's name
    format: InputFormat = None,  # noqa: A002
    key: InputKey = None,
    on_malformed: OnMalformed = "stop",
    workers: Annotated[int, option(CLUSTER, "Number of workers.")] = 100,
    modules: Import = None,
) -> None:
    """Route a skewed stream, or files, with every grouping scheme, and compare the results."""
    require_packages("a comparison", "schemes", "numba")
    # Imported late: --help and --version do not need the compiler.
    from steelyard import comparison, schemes
    from steelyard.experiments.simulate_options import FileOptions

    with progress_bar() as progress:
        bar = progress.add_task("Generating the stream", total=len(schemes.names()))
        outcomes, name = [], f"Zipf {skew:g}"
        try:
            require_whole("messages", messages, least=1)
            _require_no_random_stream(context)
            rule = cast("loading.OnMalformed", on_malformed)  # the command has checked it
            stream = FileOptions(input, format, key, on_malformed=rule).stream(most=messages)
            if stream is None:
                compared = comparison.compare(
                    skew=skew, workers=workers, messages=messages, seed=seed
                )
            else:
                name, messages = stream.name, stream.messages
                compared = comparison.compare_keys(stream.open().key_numbers, workers)
        except (ValueError, OSError) as error:
            refuse(error)
        progress.update(bar, description="Routing with each scheme")
        for outcome in compared:
            outcomes.append(outcome)
            progress.advance(bar)
    console.print(_comparison_table(outcomes, name, workers, messages))
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


def _require_no_random_stream(context: typer.Context) -> None:
    """Refuse the settings of a random stream if files are compared."""
    for name in ("skew", "seed"):
        if context.params["input"] is not None and is_on_command_line(context, name):
            raise ValueError(f"{name} has no effect on the messages of files: leave it out")


def _comparison_table(
    outcomes: "list[SchemeResult]", name: str, workers: int, messages: int
) -> Table:
    table = Table(title=f"{messages:,} messages, {name}, {workers:,} workers")
    table.add_column("scheme")
    for title in ("imbalance", "copies of a key", "copies of hottest", "M messages/s"):
        table.add_column(title, justify="right")
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
