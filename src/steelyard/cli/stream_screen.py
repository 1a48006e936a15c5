"""What `steelyard stream` shows: the workers of a slot, results, and what is still to come.

Slots and rows enter; tables and lines of text leave.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from steelyard.cli.stream_checks import Options
from steelyard.dashboard import wording
from steelyard.dashboard.wording import many
from steelyard.printable import printable

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.spark.streaming.stream_output import RunningQuery

_LEAST_SHARE = 0.005
"""A key with a smaller share of the messages, which would be shown as 0 %, is not hot."""

_WORKER_COLUMNS = (
    "worker",
    "state",
    "messages",
    "share",
    "utilization",
    Text("virtual\nworkers"),
    "keys",
    "p50",
    "p99",
)
"""Headers of the table of workers, which fits 80 columns."""


def reason_for_no_slot(query: "RunningQuery") -> str:
    """Return the reason why a query ended without a slot."""
    has_read = any(progress.numInputRows for progress in query.recentProgress)
    return "No slot has ended." if has_read else "There were no new messages."


def results_to_come(query: "RunningQuery", waiting: int, options: Options) -> Iterator[str]:
    """Yield a line on results that are not written yet, and one on those that may change."""
    if waiting:
        kept = "they are in the checkpoint" if options["checkpoint"] else "no --checkpoint has them"
        yield (
            f"{many(waiting, 'partial result')} waited with the workers for the end of the period: "
            f"{kept}. With --once no result waits."
        )
    last = query.lastProgress
    if options["watermark"] is not None and last is not None:
        open_windows = sum(
            operator.numRowsTotal
            for operator in last.stateOperators
            if operator.operatorName == "stateStoreSave"
        )
        yield (
            f"{many(open_windows, 'result')} of windows that the watermark has not passed may "
            "still change."
        )


def screen_of(history: "list[Slot]", newest: list[Any], columns: list[str]) -> RenderableType:
    """Return the workers of the newest slot, and the results of the last micro-batch."""
    if not history:
        return Text("Waiting for the first micro-batch", style="dim")
    parts: list[RenderableType] = [workers_table(history[-1])]
    last = history[-1]
    so_far = f"{many(last.messages_so_far, 'message')} in {many(last.slot, 'slot')}"
    parts.append(Text(f"{so_far}, {many(last.moves_so_far, 'move')}", "dim"))
    if newest:
        table = Table(title="results of the last micro-batch, largest first")
        for number, name in enumerate(columns):
            table.add_column(name, justify="right" if number else "left", overflow="ellipsis")
        for row in newest:
            table.add_row(*map(_short, row))
        parts.append(table)
    return Group(*parts)


def workers_table(slot: "Slot") -> Table:
    """Return a table of the workers in a slot."""
    hottest = [hot for hot in slot.hot_keys[:3] if hot.share >= _LEAST_SHARE]
    hot = ", ".join(f"{hot.key[:20]!r} {hot.share:.0%}" for hot in hottest)
    title = f"slot {slot.slot} · micro-batch {slot.batch} · hot: {hot or 'none'}"
    if slot.has_low_load:
        title += " · low load"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in _WORKER_COLUMNS:
        table.add_column(name, justify="left" if name == "state" else "right")
    styles = {"busy": "red", "idle": "cyan", "drained": "dim"}
    for worker in slot.workers:
        table.add_row(
            str(worker.worker),
            Text(printable(worker.state), styles.get(worker.state, "")),
            f"{worker.messages:,}",
            f"{worker.share:.1%}",
            f"{worker.utilization:.0%}",
            str(worker.virtual_workers),
            f"{worker.keys:,}",
            _seconds(worker.p50),
            _seconds(worker.p99),
        )
    return table


def _seconds(latency: float | None) -> str:
    return "" if latency is None else wording.seconds(latency)


def _short(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else printable(value)
    return text if len(text) <= 40 else text[:39] + "…"
