"""`steelyard demo`: the main job on this machine."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table

from steelyard.cli.checks import require_folder_for
from steelyard.cli.console import console, error_console, progress_bar, refuse, require_packages
from steelyard.cli.dashboard import check_page, start_page, wait_for_interrupt
from steelyard.cli.options import CLUSTER, INPUT, OUTPUT, Skew, Ui, UiPort, option
from steelyard.validation import require_between, require_whole

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.dashboard.runs import ShownRun
    from steelyard.deployment.demo import DemoRun, DemoSettings


def demo(
    skew: Skew = 1.2,
    messages: Annotated[int, option(INPUT, "Messages in a micro-batch.")] = 300_000,
    batches: Annotated[
        int, option(INPUT, "Micro-batches of consistent grouping; half as many of the other.")
    ] = 7,
    workers: Annotated[int, option(CLUSTER, "Workers.")] = 8,
    slow: Annotated[int, option(CLUSTER, "Number of slow workers.")] = 2,
    speed: Annotated[float, option(CLUSTER, "Speed of the slow ones; the others have 1.")] = 0.3,
    html: Annotated[Path, option(OUTPUT, "The page to write, with figures.")] = Path(
        "steelyard-demo.html"
    ),
    ui: Ui = False,
    ui_port: UiPort = 0,
) -> None:
    """Count a skewed stream on Spark by workers of which some are slow, in two ways.

    First every key goes where its hash says (key grouping), then consistent grouping learns who
    can do how much. Workers sleep for the time that a message would take.
    """
    require_packages("the demo", "spark,simulate", "pyspark", "pandas", "matplotlib", "jinja2")
    from steelyard.deployment.demo import DEMO_STRATEGIES, DemoSettings

    check_page(ui=ui, ui_port=ui_port)
    try:
        require_whole("batches", batches, least=2)
        require_between("skew", skew, least=0, most=10)
        require_folder_for("html", html)
        setting = DemoSettings(workers, slow, speed, skew, messages=messages)
    except ValueError as error:
        refuse(error)
    both = (max(2, batches // 2), batches)
    with ExitStack() as page:
        seen: dict[str, list[Slot]] = {strategy.title: [] for strategy in DEMO_STRATEGIES}
        if ui:
            page.enter_context(start_page(_runs_on_page(seen), ui_port))
        runs, keys = _run_both(setting, both, seen)
        _print_results(runs, keys, html)
        if ui:
            wait_for_interrupt()


def _run_both(
    setting: "DemoSettings", batches: tuple[int, int], seen: "dict[str, list[Slot]]"
) -> "tuple[list[DemoRun], float]":
    """Run it on a Spark of its own; who watches finds the slots so far in `seen`."""
    from steelyard.deployment.demo import compare
    from steelyard.spark.session import STATE_IN_ROCKSDB, session

    with ExitStack() as cleaning:
        made = cleaning.enter_context(tempfile.TemporaryDirectory(prefix="steelyard-demo-"))
        folder = Path(made)
        with error_console.status("Starting Spark"):
            master, log = f"local[{setting.workers}]", folder / "spark.log"
            starting = session("steelyard demo", master, STATE_IN_ROCKSDB, log)
            spark = cleaning.enter_context(starting)
        progress = cleaning.enter_context(progress_bar())
        bar = progress.add_task("Making the stream", total=sum(batches))

        def watch(name: str, slot: "Slot") -> None:
            seen[name].append(slot)
            rate = slot.messages / slot.seconds
            progress.update(bar, advance=1, description=f"{name}: {rate:,.0f} messages/s")

        return compare(spark, folder, setting, batches, watch)


def _runs_on_page(seen: "dict[str, list[Slot]]") -> "list[ShownRun]":
    """Both ways side by side; with key grouping there is nothing that could move."""
    from steelyard.dashboard.runs import Finished, ShownRun

    first, last = seen
    return [
        ShownRun(first, Finished(seen[first]), has_blocks=False),
        ShownRun(last, Finished(seen[last])),
    ]


def _print_results(runs: "list[DemoRun]", keys: float, html: Path) -> None:
    """The table, what is in it, and the page with the figures."""
    from steelyard.report.demo import demo_page

    setting = runs[0].setting
    console.print(_table(runs, keys))
    first, last = runs
    console.print(
        f"{setting.workers} workers, {setting.slow} of them at {setting.speed:.0%} of the others' "
        f"speed; together they can count {setting.limit:,.0f} messages a second.",
        style="dim",
    )
    console.print(
        "used: of what all workers can do, while the busiest is busy · imbalance: how much longer "
        "the busiest worker takes than the mean · latency: from the start of a micro-batch · "
        "copies: workers that hold a key, on average",
        style="dim",
    )
    html.write_text(demo_page(runs, keys), "utf-8")
    times = last.throughput / first.throughput
    console.print(
        f"Consistent grouping counts {times:.1f} times as much a second. "
        f"The page with the figures is {html}."
    )


def _table(runs: "list[DemoRun]", keys: float) -> Table:
    setting = runs[0].setting
    table = Table(title=f"{setting.messages:,} messages a micro-batch, Zipf {setting.skew:g}")
    table.add_column("")
    for run in runs:
        table.add_column(run.name, justify="right", style="bold" if run is runs[-1] else None)
    rows = (
        ("messages a second", [f"{run.throughput:,.0f}" for run in runs]),
        ("used", [f"{run.used:.0%}" for run in runs]),
        ("latency, median", [f"{run.p50:.1f} s" for run in runs]),
        ("latency, 99th percentile", [f"{run.p99:.1f} s" for run in runs]),
        ("imbalance", [f"{run.imbalance:.2f}" for run in runs]),
        ("copies", [f"{run.copies(keys):.2f}" for run in runs]),
    )
    for name, values in rows:
        table.add_row(name, *values)
    return table
