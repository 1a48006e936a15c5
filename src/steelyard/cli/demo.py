"""`steelyard demo`: count a skewed stream with slow workers on this machine."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table

from steelyard.cli.checks import require_folder_for
from steelyard.cli.console import console, progress_bar, refuse, require_packages
from steelyard.cli.dashboard import check_page, start_page, wait_for_interrupt
from steelyard.cli.options import CLUSTER, INPUT, OUTPUT, Conf, Skew, Ui, UiPort, option
from steelyard.cli.spark_start import running_spark, settings_of
from steelyard.validation import require_between, require_whole

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.dashboard.runs import ShownRun
    from steelyard.deployment.demo import DemoRun, DemoSettings


def demo(
    skew: Skew = 1.2,
    messages: Annotated[int, option(INPUT, "Messages in a micro-batch.")] = 300_000,
    batches: Annotated[
        int, option(INPUT, "Micro-batches of consistent grouping; key grouping gets half.")
    ] = 7,
    workers: Annotated[int, option(CLUSTER, "Number of workers.")] = 8,
    slow: Annotated[int, option(CLUSTER, "Number of slow workers.")] = 2,
    speed: Annotated[float, option(CLUSTER, "Speed of a slow worker; others have 1.")] = 0.3,
    html: Annotated[Path, option(OUTPUT, "Write a page with figures.")] = Path(
        "steelyard-demo.html"
    ),
    ui: Ui = False,
    ui_port: UiPort = 0,
    conf: Conf = None,
) -> None:
    """Compare key grouping with consistent grouping on a skewed stream with slow workers.

    Spark counts the same stream twice on this machine. Key grouping sends each key to the worker
    of its hash; consistent grouping learns hot keys and slow workers. Workers sleep for the service
    time of each message.
    """
    needed = ("pyspark", "pandas", "numba", "matplotlib", "jinja2")
    require_packages("the demo", "spark,simulate", *needed)
    from steelyard.deployment.demo import DEMO_STRATEGIES, DemoSettings
    from steelyard.spark.session import STATE_IN_ROCKSDB

    check_page(ui=ui, ui_port=ui_port)
    try:
        require_whole("batches", batches, least=2)
        require_between("skew", skew, least=0, most=10)
        require_folder_for("html", html)
        spark_settings = settings_of(conf, {"spark.master": "--workers"})
        setting = DemoSettings(workers, slow, speed, skew, messages=messages)
    except ValueError as error:
        refuse(error)
    both = (max(2, batches // 2), batches)
    with ExitStack() as page:
        seen: dict[str, list[Slot]] = {strategy.title: [] for strategy in DEMO_STRATEGIES}
        if ui:
            page.enter_context(start_page(_runs_on_page(seen), ui_port))
        runs, keys = _run_both(setting, both, seen, {**STATE_IN_ROCKSDB, **spark_settings})
        _print_results(runs, keys, html)
        if ui:
            wait_for_interrupt()


def _run_both(
    setting: "DemoSettings",
    batches: tuple[int, int],
    seen: "dict[str, list[Slot]]",
    settings: dict[str, str],
) -> "tuple[list[DemoRun], float]":
    """Run both strategies on a new Spark session; append each slot to `seen` when it ends."""
    from steelyard.deployment.demo import compare
    from steelyard.spark.versions.supported import STREAMS, require_version

    with ExitStack() as cleaning:
        made = cleaning.enter_context(tempfile.TemporaryDirectory(prefix="steelyard-demo-"))
        folder = Path(made)
        starting = running_spark("demo", f"local[{setting.workers}]", settings)
        spark = cleaning.enter_context(starting)
        try:
            require_version(spark, STREAMS, "steelyard demo")
        except ValueError as error:
            refuse(error)
        progress = cleaning.enter_context(progress_bar())
        bar = progress.add_task("Generating the stream", total=sum(batches))

        def watch(name: str, slot: "Slot") -> None:
            seen[name].append(slot)
            rate = slot.messages / slot.seconds
            progress.update(bar, advance=1, description=f"{name}: {rate:,.0f} messages/s")

        return compare(spark, folder, setting, batches, watch)


def _runs_on_page(seen: "dict[str, list[Slot]]") -> "list[ShownRun]":
    """Return both runs for the dashboard; key grouping has no virtual workers to show."""
    from steelyard.dashboard.runs import Finished, ShownRun

    first, last = seen
    return [
        ShownRun(first, Finished(seen[first]), has_blocks=False),
        ShownRun(last, Finished(seen[last])),
    ]


def _print_results(runs: "list[DemoRun]", keys: float, html: Path) -> None:
    """Print the table and its explanation, and write the page with the figures."""
    from steelyard.report.demo import demo_page

    setting = runs[0].setting
    console.print(_table(runs, keys))
    first, last = runs
    console.print(
        f"{setting.workers} workers, {setting.slow} of them with {setting.speed:.0%} of the "
        f"others' speed; their total capacity is {setting.limit:,.0f} messages/s.",
        style="dim",
    )
    console.print(
        "efficiency: work done, as a share of the work that all workers could have done in the "
        "same time · latency: from the start of a micro-batch · imbalance: longest busy time over "
        "mean busy time, minus 1 · copies of a key: number of workers that hold it, on average",
        style="dim",
    )
    html.write_text(demo_page(runs, keys), "utf-8")
    times = last.throughput / first.throughput
    console.print(
        f"Consistent grouping has {times:.1f} times the throughput of key grouping. "
        f"The page with the figures is {html}."
    )


def _table(runs: "list[DemoRun]", keys: float) -> Table:
    setting = runs[0].setting
    title = f"{setting.messages:,} messages per micro-batch, Zipf {setting.skew:g}"
    table = Table(title=title)
    table.add_column("")
    for run in runs:
        table.add_column(run.name, justify="right", style="bold" if run is runs[-1] else None)
    rows = (
        ("throughput (messages/s)", [f"{run.throughput:,.0f}" for run in runs]),
        ("efficiency", [f"{run.efficiency:.0%}" for run in runs]),
        ("latency, median", [f"{run.p50:.1f} s" for run in runs]),
        ("latency, 99th percentile", [f"{run.p99:.1f} s" for run in runs]),
        ("imbalance", [f"{run.imbalance:.2f}" for run in runs]),
        ("copies of a key", [f"{run.copies(keys):.2f}" for run in runs]),
    )
    for name, values in rows:
        table.add_row(name, *values)
    return table
