"""`steelyard stream`: the main job, with its workers on the screen."""

import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from steelyard.cli.console import complain, complaints, console, require_packages
from steelyard.cli.dashboard import Ui, UiPort, require_bokeh, shown, stay
from steelyard.dashboard.wording import many
from steelyard.printable import printable
from steelyard.validation import require_whole

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.placements import Placement
    from steelyard.spark.streaming.job import Running
    from steelyard.windows import Window

_ROWS = 10


def stream(  # noqa: PLR0915  # one option after the other, then one step after the other
    key: Annotated[str, typer.Option(help="Column, or SQL expression, of the key.")],
    source: Annotated[str, typer.Option(help="kafka, parquet, json, text or rate.")] = "rate",
    path: Annotated[str | None, typer.Option(help="Folder of files to read.")] = None,
    servers: Annotated[str | None, typer.Option(help="Kafka's host:port to read from.")] = None,
    topic: Annotated[str | None, typer.Option(help="Kafka's topic to read.")] = None,
    rate: Annotated[int, typer.Option(help="Messages a second, of the rate source.")] = 1000,
    files_per_batch: Annotated[
        int | None, typer.Option(help="Files in a micro-batch; all new ones if not given.")
    ] = None,
    agg: Annotated[
        list[str] | None,
        typer.Option(
            help="count (if none is given), count:COLUMN, sum:, mean:, variance:, min:, max:, "
            "topk:, distinct:, set:, quantiles:."
        ),
    ] = None,
    sink: Annotated[str, typer.Option(help="console, parquet or kafka.")] = "console",
    out: Annotated[str | None, typer.Option(help="Folder to write, of the parquet sink.")] = None,
    out_servers: Annotated[
        str | None, typer.Option(help="Kafka's host:port to write to; --servers if not given.")
    ] = None,
    out_topic: Annotated[str | None, typer.Option(help="Kafka's topic to write.")] = None,
    workers: Annotated[int, typer.Option(help="Workers.")] = 4,
    placement: Annotated[str, typer.Option(help="pull or delegated.")] = "pull",
    virtual_workers: Annotated[
        int | None,
        typer.Option(help="Of each worker; 100 when delegated, otherwise one, a task each."),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(help="Delegated: how long partial results are kept; batches, or 10 minutes."),
    ] = None,
    slot: Annotated[
        str | None, typer.Option(help="How often the workers learn: batches, or 10 seconds.")
    ] = None,
    time_column: Annotated[
        str | None, typer.Option("--time", help="Column of event times, for windows.")
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Length of event-time windows, such as 5 minutes.")
    ] = None,
    slide: Annotated[str | None, typer.Option(help="From one window to the next.")] = None,
    watermark: Annotated[
        str | None, typer.Option(help="How late messages may be, such as 1 minute.")
    ] = None,
    control: Annotated[
        str | None, typer.Option(help="Folder by which workers learn; made anew if not given.")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Spark's checkpoint; made anew if not given.")
    ] = None,
    once: Annotated[bool, typer.Option(help="Stop when all that is there was read.")] = False,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve Prometheus metrics on 127.0.0.1 at this port.")
    ] = None,
    jars: Annotated[str | None, typer.Option(help="Jars for Spark, such as Kafka's.")] = None,
    ui: Ui = False,
    ui_port: UiPort = 0,
) -> None:
    """Aggregate a stream by key on balanced workers, and watch them. Ctrl-C stops it cleanly."""
    _require_what_is_needed(has_metrics=metrics_port is not None, has_page=ui)
    from steelyard.aggregators.naming import aggregator_named
    from steelyard.dashboard.runs import ShownRun
    from steelyard.spark.session import STATE_IN_ROCKSDB, session
    from steelyard.spark.streaming.job import Sink, Source
    from steelyard.spark.streaming.requirements import slot_length_of
    from steelyard.spark.streaming.stream_grouping import group_stream

    more = {
        "spark.sql.shuffle.partitions": str(workers),
        **STATE_IN_ROCKSDB,
        **({"spark.jars": jars} if jars else {}),
        # A worker's task rather waits for the executor that has the worker's state.
        **({"spark.locality.wait": "60s"} if placement == "delegated" else {}),
    }
    try:
        _require_numbers(workers, rate, files_per_batch, metrics_port)
        where = _placement(placement, virtual_workers, period)
        windows = _window(time_column, window, slide, watermark)
        slot_length = _number_or_length(slot)
        slot_length_of(slot_length)
        aggregators = [aggregator_named(text) for text in agg or ["count"]]
        came_from = Source(source, path, servers, topic, rate, files_per_batch)
        goes_to = Sink(sink, out, out_servers or servers, out_topic)
        goes_to.require_room(checkpoint)
    except ValueError as error:
        complain(error)
    with ExitStack() as cleaning:
        # Spark may still write to it when it goes.
        made = tempfile.TemporaryDirectory(prefix="steelyard-", ignore_cleanup_errors=True)
        folder = Path(cleaning.enter_context(made))
        with complaints.status("Starting Spark"):
            starting = session("steelyard stream", master, more, folder / "spark.log")
            spark = cleaning.enter_context(starting)
        try:
            frame, name = came_from.frame(spark, key)
            grouped = group_stream(
                frame,
                name,
                workers=workers,
                placement=where,
                control=control or folder / "control",
                window=windows,
                slot=slot_length,
            )
            results = grouped.aggregate(*aggregators)
            if metrics_port is not None:
                cleaning.enter_context(grouped.serve_metrics(metrics_port))
        except ValueError as error:
            complain(error)
        if ui:
            title = f"{key} of {source}, {placement}"
            cleaning.enter_context(shown([ShownRun(title, grouped.history)], ui_port))
        newest: list[Any] = []

        def show(batch: Any) -> None:
            first = batch.columns[-len(aggregators)]
            by_size = batch.orderBy(batch[f"`{first}`"].desc())
            newest[:] = by_size.limit(_ROWS).collect()

        query = goes_to.start(results, name, checkpoint or str(folder / "cp"), once=once, show=show)

        def screen() -> RenderableType:
            return _screen(grouped.history(), newest, results.columns)

        failed, was_stopped = _watch(query, screen)
        grouped.await_reports(query)
        if grouped.history():
            console.print(screen())
        elif failed is None and not was_stopped:
            console.print(_why_nothing(query))
        if ui and failed is None and not was_stopped:
            stay()
    if failed is not None:
        _tell_failure(failed)
        raise typer.Exit(1)


def _placement(name: str, virtual_workers: int | None, period: str | None) -> "Placement":
    """The placement of the workers, from its options."""
    from steelyard.placements import Delegated, Pull

    if name == "delegated":
        return Delegated(
            virtual_workers=100 if virtual_workers is None else virtual_workers,
            period=_number_or_length(period),
        )
    if name != "pull":
        raise ValueError(f"placement must be 'pull' or 'delegated', got {name!r}")
    if period is not None:
        raise ValueError("period needs --placement delegated: pulled workers keep no state")
    return Pull(tasks_per_worker=1 if virtual_workers is None else virtual_workers)


def _window(
    time: str | None, length: str | None, slide: str | None, watermark: str | None
) -> "Window | None":
    """The windows, from their options."""
    from steelyard.windows import Window

    if length is None:
        for option, value in (("time", time), ("slide", slide), ("watermark", watermark)):
            if value is not None:
                raise ValueError(f"{option} needs --window, the length of the windows")
        return None
    if time is None:
        raise ValueError("window needs --time, the column of event times")
    return Window(time, length, slide, watermark)


def _require_numbers(
    workers: int, rate: int, files_per_batch: int | None, metrics_port: int | None
) -> None:
    require_whole("workers", workers, least=1)
    require_whole("rate", rate, least=1)
    if files_per_batch is not None:
        require_whole("files-per-batch", files_per_batch, least=1)
    if metrics_port is not None:
        require_whole("metrics-port", metrics_port, least=0, most=65_535)


def _tell_failure(failed: Exception) -> None:
    """All that Spark says of it: the first lines alone are often of no help."""
    first, *others = str(failed).splitlines() or [""]
    told = Text.assemble(("The query failed:", "red"), " ", printable(first))
    complaints.print(told, soft_wrap=True)
    for line in others:
        complaints.print(line.expandtabs(), highlight=False, soft_wrap=True)


def _require_what_is_needed(*, has_metrics: bool, has_page: bool) -> None:
    require_packages("a stream", "spark", "pyspark")
    if has_metrics:
        require_packages("metrics", "metrics", "prometheus_client")
    if has_page:
        require_bokeh()


def _watch(query: "Running", screen: Callable[[], RenderableType]) -> tuple[Exception | None, bool]:
    """Show what happens until the query ends; what it failed with, and if somebody ended it."""
    # Spark's own way is to cancel the jobs first, and the query would seem to have failed.
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


def _why_nothing(query: "Running") -> str:
    """Of a query that has ended, and of which there is nothing to show."""
    has_read = any(progress.numInputRows for progress in query.recentProgress)
    return "No slot has ended." if has_read else "There was nothing new to read."


def _screen(history: "list[Slot]", newest: list[Any], columns: list[str]) -> RenderableType:
    if not history:
        return Text("Waiting for the first micro-batch", style="dim")
    parts: list[RenderableType] = [workers_table(history[-1])]
    last = history[-1]
    so_far = f"{many(last.messages_so_far, 'message')} in {many(last.slot, 'slot')}"
    parts.append(Text(f"{so_far}, {many(last.moves_so_far, 'move')}", "dim"))
    if newest:
        table = Table(title="changed last, largest first")
        for number, name in enumerate(columns):
            table.add_column(name, justify="right" if number else "left", overflow="ellipsis")
        for row in newest:
            table.add_row(*map(_short, row))
        parts.append(table)
    return Group(*parts)


def workers_table(slot: "Slot") -> Table:
    """The workers of a slot."""
    hot = ", ".join(f"{hot.key[:20]!r} {hot.share:.0%}" for hot in slot.hot_keys[:3])
    table = Table(title=f"slot {slot.slot} · micro-batch {slot.batch} · hot: {hot or 'none'}")
    for name in ("worker", "state", "messages", "share", "used", "virtual", "keys", "p50", "p99"):
        table.add_column(name, justify="left" if name == "state" else "right")
    styles = {"busy": "red", "idle": "cyan", "drained": "dim"}
    for worker in slot.workers:
        table.add_row(
            str(worker.worker),
            Text(printable(worker.state), styles.get(worker.state, "")),
            f"{worker.messages:,}",
            f"{worker.share:.1%}",
            f"{worker.utilisation:.0%}",
            str(worker.virtual_workers),
            f"{worker.keys:,}",
            _seconds(worker.p50),
            _seconds(worker.p99),
        )
    return table


def _number_or_length(text: str | None) -> int | str:
    """A number of micro-batches, one if nothing is said, or a length of time."""
    return int(text or 1) if text is None or text.isdecimal() else text


def _seconds(latency: float | None) -> str:
    return "" if latency is None else f"{latency:.2g} s"


def _short(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else printable(value)
    return text if len(text) <= 40 else text[:39] + "…"
