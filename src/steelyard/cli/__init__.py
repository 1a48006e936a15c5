"""The command line: `steelyard`."""

from typing import Annotated

import typer

import steelyard
from steelyard.cli.compare import compare
from steelyard.cli.dashboard import dashboard
from steelyard.cli.demo import demo
from steelyard.cli.deploy import deploy
from steelyard.cli.doctor import doctor
from steelyard.cli.generate import generate
from steelyard.cli.reproduce import reproduce
from steelyard.cli.simulate import simulate
from steelyard.cli.stream import stream
from steelyard.cli.workers import workers

app = typer.Typer(
    help="Balance skewed, keyed data over unequal workers.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: [bold]steelyard demo[/bold]",
)


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


app.command(
    epilog="Examples: [bold]steelyard demo[/bold], "
    "[bold]steelyard demo --skew 1.4 --slow 3 --speed 0.5 --html page.html[/bold]"
)(demo)
app.command(
    epilog="Examples: [bold]steelyard doctor visits.parquet --key page --workers 24[/bold], "
    "[bold]steelyard doctor clicks.csv --key user --time at --html clicks.html[/bold], "
    "[bold]steelyard doctor --source kafka --servers broker:9092 --topic clicks[/bold]"
)(doctor)
app.command(
    epilog="Examples: [bold]steelyard compare[/bold], "
    "[bold]steelyard compare --skew 1.4 --workers 1000 --messages 20000000[/bold]"
)(compare)
app.command(
    epilog="Examples: [bold]steelyard simulate --fast 3 --times 5 --plot cg.png[/bold], "
    "[bold]steelyard simulate --dataset zf --skew 1.4 --scheme kg --workers 50[/bold], "
    "[bold]steelyard simulate settings.toml --load 0.9[/bold]"
)(simulate)
app.command(
    epilog="Examples: [bold]steelyard reproduce all --scale 0.02 --out small[/bold], "
    "[bold]steelyard reproduce epsilon heterogeneous[/bold], "
    "[bold]steelyard reproduce --list[/bold]"
)(reproduce)
app.command(epilog="Example: [bold]steelyard generate wp --fraction 0.1 --out wp.parquet[/bold]")(
    generate
)

app.command(
    epilog="Examples: [bold]steelyard stream --source rate --key 'value % 7'[/bold], "
    "[bold]steelyard stream --source text --path books --key word --agg count --once[/bold], "
    "[bold]steelyard stream --source kafka --servers 127.0.0.1:9092 --topic clicks --key key "
    "--agg count --placement delegated --workers 8 --control /shared/clicks[/bold]"
)(stream)
app.command(
    epilog="Examples: [bold]steelyard dashboard[/bold], "
    "[bold]steelyard dashboard --control /shared/clicks[/bold], "
    "[bold]steelyard dashboard --replay history.jsonl --open[/bold]"
)(dashboard)
app.command(
    epilog="Examples: [bold]steelyard deploy --out deployment --quick[/bold], "
    "[bold]steelyard deploy --out small --workers 4 --messages 20000 --hetero --delays 1[/bold], "
    "[bold]steelyard deploy --out mine --servers broker:9092 --schemes kg,cg-pull[/bold]"
)(deploy)
app.add_typer(workers, name="workers")

if __name__ == "__main__":
    app()
