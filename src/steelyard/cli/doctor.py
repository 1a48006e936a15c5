"""`steelyard doctor`: find out whether data is skewed, how much it costs, and how to fix it."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import option_values
from steelyard.cli.checks import require_folder_for, require_jars, require_servers
from steelyard.cli.console import (
    console,
    error_console,
    numbers,
    progress_bar,
    refuse,
    require_packages,
)
from steelyard.cli.name_values import SOURCE_OPTIONS, require_not_given
from steelyard.cli.options import (
    GROUPING,
    INPUT,
    OUTPUT,
    Conf,
    Jars,
    Master,
    ReportKeys,
    Servers,
    SourceOption,
    Topic,
    option,
)
from steelyard.cli.spark_start import running_spark, settings_of

if TYPE_CHECKING:
    from steelyard.doctor import Examination
    from steelyard.spark.doctor_input import Data

_NO_DATA = (
    "data must be a file, a folder or a table to examine, "
    "as in: steelyard doctor visits.parquet --key page"
)

_OWN_OPTIONS = {
    "kafka.bootstrap.servers": "--servers",
    "subscribe": "--topic",
    "path": "the file or folder as an argument",
    "sep": "--separator",
    "multiline": "--multiline",
}
"""The options of a source that options of the command set."""


def doctor(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA",
            help="File, folder, quoted pattern or table; omit it for Kafka.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        option_values.doctor_source.option(
            INPUT, "Format: {choices}; by default from the file name."
        ),
    ] = None,
    separator: Annotated[str, option(INPUT, "Separator of the fields of a CSV file.")] = ",",
    multiline: Annotated[bool, option(INPUT, "Allow line breaks in CSV fields (slower).")] = False,
    servers: Servers = None,
    topic: Topic = None,
    source_option: SourceOption = None,
    messages: Annotated[
        int, option(INPUT, "Approximate number of messages to read from a topic.")
    ] = 1_000_000,
    key: Annotated[
        list[str] | None,
        option(GROUPING, "Key: column, field (user.id) or SQL expression; may be repeated."),
    ] = None,
    workers: Annotated[int, option(GROUPING, "Number of workers (tasks).")] = 24,
    capacities: Annotated[
        str | None, option(GROUPING, "Relative speeds of the workers, such as 2,1,1,0.5.")
    ] = None,
    work: Annotated[
        str, option_values.work.option(GROUPING, "Work on the rows of a key: {choices}.")
    ] = "python",
    row_time: Annotated[
        float | None, option(GROUPING, "Microseconds of work on a row; a guess by default.")
    ] = None,
    row_bytes: Annotated[
        float | None, option(GROUPING, "Shuffled bytes of a row of a join; by default measured.")
    ] = None,
    other_bytes: Annotated[
        float | None, option(GROUPING, "Bytes of the other table of a join.")
    ] = None,
    time_column: Annotated[
        str | None, option(GROUPING, "Time column, to see whether hot keys change.", "--time")
    ] = None,
    html: Annotated[Path | None, option(OUTPUT, "Write a page with figures.")] = None,
    as_json: Annotated[bool, option(OUTPUT, "Print JSON and nothing else.", "--json")] = False,
    report_keys: ReportKeys = None,
    master: Master = "local[*]",
    jars: Jars = None,
    conf: Conf = None,
) -> None:
    """Find out whether data is skewed by a key, how much that costs, and how to fix it."""
    require_packages("the doctor", "doctor", "pyspark", "pandas", "numba")
    if html is not None:
        require_packages("the page", "simulate", "matplotlib", "jinja2")
    from steelyard.doctor.estimates import Estimates
    from steelyard.doctor.job import Job
    from steelyard.doctor.work import KindOfWork
    from steelyard.spark.doctor_input import Data, kind_of
    from steelyard.spark.examining import examine, steps
    from steelyard.spark.interrupts import restored_interrupts

    try:
        path = _single_path(data or [])
        _require(bool(path or source or topic), _NO_DATA)
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
            options=SOURCE_OPTIONS.settings(source_option),
        )
        require_not_given("option", chosen.options, _OWN_OPTIONS)
        settings = settings_of(conf, {"spark.master": "--master", "spark.jars": "--jars"})
        names = key or (["key"] if chosen.kind == "kafka" else [])
        speeds = None if capacities is None else tuple(numbers("capacities", capacities))
        estimates = Estimates(row_time, row_bytes, other_bytes)
        Job(KindOfWork.named(work), tuple(names), workers, speeds)  # raises for bad settings
        if master.startswith("local"):
            chosen.require_there()
        _require(bool(names), "key must be the column to group by: pass --key")
        _require(bool(separator), "separator must be at least one character, got ''")
        _require_topic_for(chosen.kind, servers, topic)
        require_folder_for("html", html)
        require_jars(jars)
    except ValueError as error:
        refuse(error)
    more = {
        "spark.sql.shuffle.partitions": "16",
        "spark.driver.memory": "2g",
        **({"spark.jars": jars} if jars else {}),
        **settings,
    }
    question = partial(
        examine,
        workers=workers,
        capacities=speeds,
        work=work,
        estimates=estimates,
        time=time_column,
        report_keys=report_keys,
    )
    with restored_interrupts():
        found = _examined(chosen, names, question, steps(time_column, work), master, more)
    _show(found, as_json=as_json)
    if html is not None:
        _write_page(found, html)


def _examined(
    chosen: "Data",
    names: list[str],
    question: Callable[..., "Examination"],
    steps: int,
    master: str,
    more: dict[str, str],
) -> "Examination":
    """Start Spark, examine the data with a progress bar, and stop Spark."""
    from steelyard.doctor.strategies import STRATEGIES
    from steelyard.spark.interrupts import quiet_interrupts
    from steelyard.spark.resolved_columns import of_command_line

    titles = {strategy.name: strategy.title for strategy in STRATEGIES}
    with ExitStack() as cleaning:
        spark = cleaning.enter_context(running_spark("doctor", master, more))
        cleaning.enter_context(quiet_interrupts())
        progress = cleaning.enter_context(progress_bar())
        bar = progress.add_task("Reading", total=steps + 1)

        def watch(step: str) -> None:
            progress.update(bar, advance=1, description=titles.get(step, step.capitalize()))

        try:
            frame = chosen.frame(spark)
            found_key = [of_command_line(frame, name) for name in names]
            named = {"source": chosen.name, "is_sample": chosen.is_sample}
            with chosen.explained_failures("cannot be examined"):
                return question(frame, found_key, watch=watch, **named)
        except ValueError as error:
            refuse(error)


def _write_page(found: "Examination", html: Path) -> None:
    from steelyard.report.doctor import doctor_page

    html.write_text(doctor_page(found), "utf-8")
    error_console.print(f"The page with the figures is {html}.", highlight=False, soft_wrap=True)


def _single_path(data: list[str]) -> str | None:
    """Return the path to examine; a shell expands a pattern without quotes to many paths."""
    if len(data) > 1:
        raise ValueError(
            f"data must be one file or folder, got {len(data)}; name their folder, or a pattern in "
            "quotes, such as 'orders/*.parquet'"
        )
    return data[0] if data else None


def _require_topic_for(kind: str, servers: str | None, topic: str | None) -> None:
    """Refuse Kafka options for other data, because they would have no effect."""
    for name, value in (("servers", servers), ("topic", topic)):
        _require(
            value is None or kind == "kafka",
            f"--{name} works only with --source kafka, not with {kind}",
        )
    require_servers("servers", servers)


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
            # Code (which is indented) and the row of Steelyard's strategy are colored.
            is_code = section is sections[-1] and line.startswith("  ")
            style = "bold green" if is_code or line.startswith(ours) else ""
            show(f"  {line}".rstrip(), style=style)
