"""The command line: `steelyard`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import steelyard

app = typer.Typer(
    help="Balance skewed, keyed data over unequal workers.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: [bold]steelyard demo --skew 1.4 --workers 50[/bold]",
)
console = Console()
complaints = Console(stderr=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"steelyard {steelyard.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Balance skewed, keyed data over unequal workers."""


@app.command(
    epilog="Examples: [bold]steelyard demo[/bold], "
    "[bold]steelyard demo --skew 1.4 --workers 1000 --messages 20000000[/bold]"
)
def demo(
    skew: Annotated[float, typer.Option(help="Zipf exponent of the keys: 0 is uniform.")] = 1.0,
    workers: Annotated[int, typer.Option(help="Workers to spread the messages over.")] = 100,
    messages: Annotated[int, typer.Option(help="Messages to route.")] = 5_000_000,
    seed: Annotated[int, typer.Option(help="Another seed gives another stream.")] = 0,
) -> None:
    """Route a skewed stream by every grouping scheme and compare them."""
    # Late, so that --help and --version do not wait for the compiler.
    from steelyard import demo as comparison
    from steelyard import schemes

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=complaints, transient=True) as progress:
        bar = progress.add_task("Making the stream", total=len(schemes.names()))
        outcomes = []
        try:
            compared = comparison.compare(skew=skew, workers=workers, messages=messages, seed=seed)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        progress.update(bar, description="Routing by each scheme")
        for outcome in compared:
            outcomes.append(outcome)
            progress.advance(bar)
    console.print(_comparison_table(outcomes, skew, workers, messages))
    console.print(
        "imbalance: how far the most loaded worker is above the mean · memory: keys held by all "
        "workers, per different key · copies: workers that hold the hottest key\n"
        "kg and pkg save memory and overload a worker; sg, potc and wchoices spread every hot key "
        "over all workers; [bold]porc[/bold] (power of random choices, the paper's) and "
        "[bold]porc-graded[/bold] (ours) keep both low.",
        style="dim",
    )


def _comparison_table(
    outcomes: "list[steelyard.demo.Outcome]", skew: float, workers: int, messages: int
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


if __name__ == "__main__":
    app()
