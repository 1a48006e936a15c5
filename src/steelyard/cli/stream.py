"""`steelyard stream`: aggregate a stream by key, and show its workers."""

import logging
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from steelyard.cli import option_values
from steelyard.cli.console import (
    console,
    error_console,
    presentable,
    refuse,
    require_packages,
)
from steelyard.cli.dashboard import check_page, start_page, wait_for_interrupt
from steelyard.cli.name_values import SINK_OPTIONS
from steelyard.cli.options import (
    GROUPING,
    INPUT,
    OUTPUT,
    SPARK,
    WINDOW,
    Conf,
    Jars,
    Master,
    ReportKeys,
    Servers,
    SourceOption,
    Topic,
    Ui,
    UiPort,
    option,
)
from steelyard.cli.spark_start import running_spark, settings_of
from steelyard.cli.stream_checks import (
    REAL_TIME,
    check_stream_options,
    own_settings,
    placement_of,
    slot_of,
    window_of,
    with_settings,
)
from steelyard.cli.stream_screen import reason_for_no_slot, results_to_come, screen_of

if TYPE_CHECKING:
    from steelyard.reported_keys import ReportedKeys
    from steelyard.spark.streaming.stream_output import RunningQuery

_MORE_SLOTS = 32
"""Task slots of a local Spark in real-time mode, besides one for each worker: for the partitions of
the topic, and for the plan."""

_ROWS = 10
"""Results that are shown."""


def stream(  # noqa: PLR0912, PLR0915  # one option after the other, then one step after the other
    context: typer.Context,
    *,
    source: Annotated[
        str, option_values.stream_source.option(INPUT, "Source of the messages: {choices}.")
    ] = "rate",
    path: Annotated[str | None, option(INPUT, "Folder of files to read.")] = None,
    servers: Servers = None,
    topic: Topic = None,
    source_option: SourceOption = None,
    rate: Annotated[
        int | None, option(INPUT, "Messages per second of the rate source; 1000 if not given.")
    ] = None,
    files_per_batch: Annotated[
        int | None, option(INPUT, "Most files in a micro-batch; all new files if not given.")
    ] = None,
    once: Annotated[
        bool,
        option(INPUT, "Stop after all available messages are read; micro-batches end periods."),
    ] = False,
    key: Annotated[str, option(GROUPING, "Key column, or an SQL expression.")],
    agg: Annotated[
        list[str] | None,
        option_values.aggregator.option(GROUPING, "Aggregators, count if not given: {choices}."),
    ] = None,
    workers: Annotated[int, option(GROUPING, "Number of workers.")] = 4,
    placement: Annotated[
        str,
        option_values.placement.option(
            GROUPING,
            "How workers run: {choices}. pull: any free task slot takes the next task, and workers "
            "keep no state. delegated: each worker stays on one executor and keeps state.",
        ),
    ] = "pull",
    virtual_workers: Annotated[
        int | None,
        option(GROUPING, "Delegated, real-time: virtual workers per worker; 100 if not given."),
    ] = None,
    tasks_per_worker: Annotated[
        int | None, option(GROUPING, "Pull: Spark tasks per worker; 1 if not given.")
    ] = None,
    period: Annotated[
        str | None,
        option(GROUPING, "Delegated: micro-batches, or event time such as '10 minutes'."),
    ] = None,
    slot: Annotated[
        str | None, option(GROUPING, "Slot: micro-batches, or clock time such as '10 seconds'.")
    ] = None,
    control: Annotated[
        str | None, option(GROUPING, "Control path (shared folder); temporary if not given.")
    ] = None,
    time_column: Annotated[
        str | None, option(WINDOW, "Event-time column of windows.", "--time")
    ] = None,
    window: Annotated[
        str | None, option(WINDOW, "Length of a window, such as '5 minutes'.")
    ] = None,
    slide: Annotated[str | None, option(WINDOW, "Time between the starts of windows.")] = None,
    watermark: Annotated[
        str | None, option(WINDOW, "Allowed lateness, such as '1 minute'.")
    ] = None,
    sink: Annotated[
        str, option_values.sink.option(OUTPUT, "Sink of the results: {choices}.")
    ] = "console",
    out: Annotated[str | None, option(OUTPUT, "Folder of the parquet sink.")] = None,
    out_servers: Annotated[
        str | None, option(OUTPUT, "host:port to write to; --servers if not given.")
    ] = None,
    out_topic: Annotated[str | None, option(OUTPUT, "Kafka topic to write.")] = None,
    sink_option: Annotated[
        list[str] | None,
        SINK_OPTIONS.option(
            OUTPUT,
            "Option of the sink, as NAME=VALUE. @FILE and env: work as in --conf. Repeatable.",
            "--out-option",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None, option(OUTPUT, "Serve Prometheus metrics on 127.0.0.1 at this port.")
    ] = None,
    report_keys: ReportKeys = None,
    ui: Ui = False,
    ui_port: UiPort = 0,
    checkpoint: Annotated[
        str | None, option(SPARK, "Checkpoint folder; temporary if not given.")
    ] = None,
    master: Master = "local[*]",
    jars: Jars = None,
    conf: Conf = None,
) -> None:
    """Aggregate a stream by key on balanced workers, and show the workers. Ctrl-C stops it."""
    require_packages("a stream", "spark", "pyspark")
    if metrics_port is not None:
        require_packages("metrics", "metrics", "prometheus_client")
    check_page(ui=ui, ui_port=ui_port)
    try:
        options = with_settings(context.params)
        check_stream_options(options)
        settings = settings_of(conf, own_settings(options))
    except ValueError as error:
        refuse(error)
    from steelyard.aggregators.naming import aggregator_named
    from steelyard.dashboard.runs import ShownRun
    from steelyard.plans import Balance
    from steelyard.reported_keys import ReportedKeys
    from steelyard.spark.session import STATE_IN_ROCKSDB
    from steelyard.spark.streaming.real_time_stream import RealTimeStream
    from steelyard.spark.streaming.stream_grouping import group_stream
    from steelyard.spark.streaming.stream_input import StreamInput
    from steelyard.spark.streaming.stream_output import StreamOutput

    more = {
        "spark.sql.shuffle.partitions": str(workers),
        **STATE_IN_ROCKSDB,
        **({"spark.jars": jars} if jars else {}),
        # A task waits for the executor that has the state of its worker.
        **({"spark.locality.wait": "60s"} if placement == "delegated" else {}),
        **settings,
    }
    try:
        aggregators = [aggregator_named(text) for text in agg or ["count"]]
        reported = ReportedKeys.of(report_keys)
        stream_input = StreamInput(
            source, path, servers, topic, rate or 1000, files_per_batch, options["source_option"]
        )
        in_real_time = placement == REAL_TIME
        target = out_servers or servers
        output = StreamOutput(
            sink, out, target, out_topic, once, options["sink_option"], in_real_time
        )
        output.require_room(checkpoint)
    except ValueError as error:
        refuse(error)
    with ExitStack() as cleaning:
        # Spark may still write to the folder while it is removed.
        made = tempfile.TemporaryDirectory(prefix="steelyard-", ignore_cleanup_errors=True)
        folder = Path(cleaning.enter_context(made))
        cleaning.enter_context(_silent("steelyard.waiting"))  # the last lines have this number
        if in_real_time and master == "local[*]":
            master = f"local[{workers + _MORE_SLOTS}]"  # all tasks run at the same time
        spark = cleaning.enter_context(running_spark("stream", master, more))
        try:
            frame, written = stream_input.frame(spark, key)
            grouped = group_stream(
                frame,
                written,
                workers=workers,
                placement=placement_of(options),
                control=control or folder / "control",
                window=window_of(options),
                slot=slot_of(options),
                routing=Balance(report_keys=report_keys),
            )
            if isinstance(grouped, RealTimeStream):
                grouped.plan_from(stream_input.recent(spark))
            results = grouped.aggregate(*aggregators)
            if metrics_port is not None:
                cleaning.enter_context(grouped.serve_metrics(metrics_port))
        except ValueError as error:
            refuse(error)
        if ui:
            title = f"{key} of {source}, {placement}"
            cleaning.enter_context(start_page([ShownRun(title, grouped.history)], ui_port))
        newest: list[Any] = []
        place = len(results.columns) - (1 if in_real_time else len(aggregators)) - 1
        name = results.columns[place]

        def show(batch: Any) -> None:
            first = batch.columns[-len(aggregators)]
            by_size = batch.orderBy(batch[f"`{first}`"].desc())
            newest[:] = [_named(row, place, reported) for row in by_size.limit(_ROWS).collect()]

        write = partial(grouped.write_stream, checkpoint=checkpoint or folder / "cp")
        query = _started(partial(output.start, results, name, write, show))

        def screen() -> RenderableType:
            return screen_of(grouped.history(), newest, results.columns)

        failed, was_stopped = _watch(query, screen)
        grouped.await_reports(query)
        if grouped.history():
            console.print(screen())
        elif failed is None and not was_stopped:
            console.print(reason_for_no_slot(query))
        if failed is None:
            for line in results_to_come(query, grouped.waiting(), options):
                console.print(line, soft_wrap=True)
        if ui and failed is None and not was_stopped:
            wait_for_interrupt()
    if failed is not None:
        _print_failure(failed)
        raise typer.Exit(1)


@contextmanager
def _silent(logger: str) -> Iterator[None]:
    """Log nothing with a logger until the end of the block."""
    named = logging.getLogger(logger)
    before, named.disabled = named.disabled, True
    try:
        yield
    finally:
        named.disabled = before


def _started(start: Callable[[], "RunningQuery"]) -> "RunningQuery":
    """Start the query, or refuse the checkpoint of another query."""
    try:
        return start()
    except ValueError as error:
        refuse(error)


def _print_failure(failed: Exception) -> None:
    """Print our sentence on a changed query, or else the whole message of Spark.

    The first line of that message is often not enough.
    """
    from steelyard.spark.streaming.state_schema import explanation_of

    first, *others = (explanation_of(str(failed)) or str(failed)).splitlines() or [""]
    text = Text.assemble(("The query failed:", "red"), " ", presentable(first))
    error_console.print(text, soft_wrap=True)
    for line in others:
        error_console.print(line.expandtabs(), highlight=False, soft_wrap=True)


def _watch(
    query: "RunningQuery", screen: Callable[[], RenderableType]
) -> tuple[Exception | None, bool]:
    """Update the screen until the query ends.

    Returns:
        The exception of a failed query, and whether the user stopped it.
    """
    # Spark's own handler cancels jobs first, which makes the query fail.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    was_stopped = False
    try:
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            while query.isActive:
                live.update(screen())
                time.sleep(0.25)
    except KeyboardInterrupt:
        was_stopped = True
        console.print("Stopping")
    finally:
        query.stop()
        signal.signal(signal.SIGINT, before)
    return None if was_stopped else query.exception(), was_stopped


def _named(row: Any, place: int, reported: "ReportedKeys") -> list[Any]:
    """Return the values of a result; the key at this place is named as in reports."""
    values = list(row)
    if reported.mode != "plain" and values[place] is not None:
        values[place] = reported.shown(str(values[place]))
    return values
