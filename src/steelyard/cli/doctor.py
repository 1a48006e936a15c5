"""`steelyard doctor`: is my data skewed, what would that cost, what should I do?"""

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.console import (
    complain,
    complaints,
    console,
    numbers,
    progress_bar,
    require_packages,
)

if TYPE_CHECKING:
    from steelyard.doctor import Examination

_NOTHING = (
    "data: name a file, a folder or a table to examine, "
    "as in: steelyard doctor visits.parquet --key page"
)


def doctor(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA",
            help="A file, a folder, a pattern in quotes, or a table; none with kafka.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="Column of the key; more than once for several, user.id for a field."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Tasks that share the work.")] = 24,
    capacities: Annotated[
        str | None, typer.Option(help="How fast each is, if they differ: 2,1,1,0.5.")
    ] = None,
    work: Annotated[
        str, typer.Option(help="What is done by key: python, aggregate, join, write or stream.")
    ] = "python",
    time_column: Annotated[
        str | None, typer.Option("--time", help="Column of times: do the hot keys change?")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with figures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    source: Annotated[
        str | None,
        typer.Option(help="parquet, csv, json, table or kafka; by the file's name if not given."),
    ] = None,
    separator: Annotated[str, typer.Option(help="Between the fields of a CSV file.")] = ",",
    multiline: Annotated[
        bool, typer.Option(help="Fields of a CSV file may hold line breaks: slower.")
    ] = False,
    servers: Annotated[str | None, typer.Option(help="Kafka's host:port to read from.")] = None,
    topic: Annotated[str | None, typer.Option(help="Kafka's topic to read.")] = None,
    messages: Annotated[
        int, typer.Option(help="About so many messages are taken of a topic.")
    ] = 1_000_000,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    jars: Annotated[str | None, typer.Option(help="Jars for Spark, such as Kafka's.")] = None,
) -> None:
    """Tell whether data is skewed by a key, what that costs, and what to do about it."""
    require_packages("the doctor", "spark", "pyspark", "pandas")
    if html is not None:
        require_packages("the page", "simulate", "matplotlib", "jinja2")
    from steelyard.doctor.job import Job
    from steelyard.doctor.strategies import STRATEGIES
    from steelyard.doctor.work import Work
    from steelyard.spark.doctor_input import Data, kind_of
    from steelyard.spark.examining import examine, steps
    from steelyard.spark.failures import failures_told
    from steelyard.spark.session import session

    try:
        path = _the_one(data or [])
        _require(bool(path or source or topic), _NOTHING)
        known = source or ("kafka" if topic else kind_of(path or ""))
        chosen = Data(
            kind=known or "parquet",
            path=path,
            servers=servers,
            topic=topic,
            messages=messages,
            separator=separator,
            multiline=multiline,
            is_guess=known is None,
        )
        names = key or (["key"] if chosen.kind == "kafka" else [])
        speeds = None if capacities is None else tuple(numbers("capacities", capacities))
        Job(Work.named(work), tuple(names), workers, speeds)  # refuses bad settings
        if master.startswith("local"):
            chosen.require_there()
        _require(bool(names), "key: name the column by which rows belong together, with --key")
        there = html is None or html.absolute().parent.is_dir()
        _require(there, f"html: there is no folder to write {str(html)!r} into")
    except ValueError as error:
        complain(error)
    more = {
        "spark.sql.shuffle.partitions": "16",
        "spark.driver.memory": "2g",
        **({"spark.jars": jars} if jars else {}),
    }
    with ExitStack() as cleaning:
        made = tempfile.TemporaryDirectory(prefix="steelyard-", ignore_cleanup_errors=True)
        folder = Path(cleaning.enter_context(made))
        with complaints.status("Starting Spark"):
            starting = session("steelyard doctor", master, more, folder / "spark.log")
            spark = cleaning.enter_context(starting)
        progress = cleaning.enter_context(progress_bar())
        bar = progress.add_task("Reading", total=steps(time_column) + 1)

        titles = {strategy.name: strategy.title for strategy in STRATEGIES}

        def watch(step: str) -> None:
            progress.update(bar, advance=1, description=titles.get(step, step.capitalize()))

        try:
            frame = chosen.frame(spark)
            with failures_told(f"data: {chosen.name!r} cannot be examined"):
                found = examine(
                    frame,
                    names,
                    workers,
                    capacities=speeds,
                    work=work,
                    time=time_column,
                    source=chosen.name,
                    is_sample=chosen.is_sample,
                    watch=watch,
                )
        except ValueError as error:
            complain(error)
        if html is not None:
            from steelyard.report.doctor import doctor_page

            html.write_text(doctor_page(found), "utf-8")
    _show(found, as_json=as_json)
    if html is not None:
        complaints.print(f"The page with the figures is {html}.", highlight=False, soft_wrap=True)


def _the_one(data: list[str]) -> str | None:
    """What is to be examined; a shell makes many files of a pattern without quotes."""
    if len(data) > 1:
        raise ValueError(
            f"data: one file or folder is examined, got {len(data)}; give their folder, or a "
            "pattern in quotes, such as 'orders/*.parquet'"
        )
    return data[0] if data else None


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise ValueError(otherwise)


def _show(found: "Examination", *, as_json: bool) -> None:
    if as_json:
        typer.echo(found.to_json())
        return
    from steelyard.doctor.strategies import CONSISTENT_GROUPING

    ours = CONSISTENT_GROUPING.described(found.workers, found.key)
    show = partial(console.print, highlight=False, soft_wrap=True)
    show(found.heading, style="bold")
    sections = found.sections()
    for section in sections:
        show()
        show(section.question, style="bold cyan")
        for line in section.lines:
            # Code is indented; the other line in color is that of Steelyard's own strategy.
            is_code = section is sections[-1] and line.startswith("  ")
            style = "bold green" if is_code or line.startswith(ours) else ""
            show(f"  {line}".rstrip(), style=style)
