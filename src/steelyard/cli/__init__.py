"""The command line of Steelyard."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

import steelyard
from steelyard.cli.compare import compare
from steelyard.cli.console import examples, presentable, refuse
from steelyard.cli.dashboard import dashboard
from steelyard.cli.demo import demo
from steelyard.cli.deploy import deploy
from steelyard.cli.doctor import doctor
from steelyard.cli.generate import generate
from steelyard.cli.option_values import CommandWithChoices, UnknownChoiceError
from steelyard.cli.reproduce import reproduce
from steelyard.cli.simulate import simulate
from steelyard.cli.spark_start import SparkCommand
from steelyard.cli.stream import stream
from steelyard.cli.workers import workers
from steelyard.spark.failures import SparkFailed

_UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__base__)
"""The exception of Typer for bad arguments, which Typer does not export."""


class Commands(TyperGroup):
    """All commands; bad arguments and failures of Spark end with one sentence."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        with _one_sentence_errors():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        with _one_sentence_errors():
            return super().invoke(ctx)


@contextmanager
def _one_sentence_errors() -> Iterator[None]:
    """End with one sentence if an option or Spark fails; escape arguments that Typer repeats."""
    try:
        yield
    except (SparkFailed, UnknownChoiceError) as error:
        refuse(error)
    except _UsageError as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # its message is the help page
            error.message = presentable(error.message)
        raise


app = typer.Typer(
    cls=Commands,
    help="Balance skewed, keyed data over unequal workers.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("steelyard demo"),
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
    cls=SparkCommand,
    epilog=examples(
        "steelyard demo",
        "steelyard demo --skew 1.4 --slow 3 --speed 0.5 --html page.html",
        "steelyard demo --conf spark.driver.memory=4g",
    ),
)(demo)
app.command(
    cls=SparkCommand,
    epilog=examples(
        "steelyard doctor visits.parquet --key page --workers 24",
        "steelyard doctor clicks.csv --key user --time at --html clicks.html",
        "steelyard doctor --source kafka --servers broker:9092 --topic clicks",
        "steelyard doctor --servers b:9092 --topic clicks --option @kafka.properties",
        "steelyard doctor s3a://b/visits --key page --conf @spark.properties",
    ),
)(doctor)
app.command(
    cls=CommandWithChoices,
    epilog=examples(
        "steelyard compare",
        "steelyard compare --skew 1.4 --workers 1000 --messages 20000000",
        "steelyard compare --input visits.parquet --key page",
    ),
)(compare)
app.command(
    cls=CommandWithChoices,
    epilog=examples(
        "steelyard simulate --fast 3 --times 5 --plot cg.png",
        "steelyard simulate --dataset zf --skew 1.4 --scheme kg --workers 50",
        "steelyard simulate settings.toml --load 0.9",
        "steelyard simulate --input visits.parquet --key page",
    ),
)(simulate)
app.command(
    cls=SparkCommand,
    epilog=examples(
        "steelyard reproduce all --scale 0.02 --out small",
        "steelyard reproduce epsilon --conf spark.driver.memory=4g",
        "steelyard reproduce epsilon heterogeneous",
        "steelyard reproduce --list",
    ),
)(reproduce)
app.command(
    cls=SparkCommand,
    epilog=examples(
        "steelyard generate wp --fraction 0.1 --out wp.parquet",
        "steelyard generate wp --out wp.parquet --conf spark.driver.memory=4g",
    ),
)(generate)
app.command(
    cls=SparkCommand,
    epilog=examples(
        "steelyard stream --source rate --key 'value % 7'",
        "steelyard stream --source text --path books --key word --agg count --once",
        "steelyard stream --source kafka --servers broker:9092 --topic clicks --key key",
        "steelyard stream --key 'value % 7' --placement delegated --control learned",
        "steelyard stream --key 'value % 7' --conf spark.driver.memory=4g",
        "steelyard stream --source kafka --servers b:9 --topic t --key key --option @f",
        "steelyard stream --key k --sink parquet --out o --out-option compression=lz4",
    ),
)(stream)
app.command(
    cls=CommandWithChoices,
    epilog=examples(
        "steelyard dashboard",
        "steelyard dashboard --control /shared/clicks",
        "steelyard dashboard --replay history.jsonl --open",
    ),
)(dashboard)
app.command(
    cls=SparkCommand,
    epilog=examples(
        "steelyard deploy --out deployment --quick",
        "steelyard deploy --out deployment --conf spark.driver.memory=8g",
        "steelyard deploy --out small --workers 4 --messages 20000 --hetero --delays 1",
        "steelyard deploy --out mine --servers broker:9092 --schemes kg,cg-pull",
    ),
)(deploy)
app.add_typer(workers, name="workers")

if __name__ == "__main__":
    app()
