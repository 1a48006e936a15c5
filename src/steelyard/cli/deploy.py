"""`steelyard deploy`: the paper's deployment on Spark and Kafka, with other strategies."""

import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich import box
from rich.console import Group
from rich.table import Table

from steelyard.cli import option_values
from steelyard.cli.checks import require_no_file, require_servers, require_writable
from steelyard.cli.console import console, numbers, progress_bar, refuse, require_packages
from steelyard.cli.options import CLUSTER, GROUPING, INPUT, OUTPUT, RUN, Conf, option
from steelyard.cli.spark_start import settings_of, status_line

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.deployment.grid_plan import GridRun
    from steelyard.deployment.grid_settings import GridSettings
    from steelyard.report.deployment_summary import SummaryRow


def deploy(
    *,
    messages: Annotated[
        int, option(INPUT, "Messages in a topic, which limits every run.")
    ] = 6_000_000,
    servers: Annotated[
        str | None, option(INPUT, "host:port of a Kafka cluster; a local broker if not given.")
    ] = None,
    data: Annotated[
        Path | None,
        option(INPUT, "Folder with sotu_words.parquet; ../shared/data if it exists."),
    ] = None,
    schemes: Annotated[
        str,
        option_values.strategies.option(
            GROUPING, "Strategies: {choices}; separate several with commas."
        ),
    ] = "all",
    workers: Annotated[int, option(CLUSTER, "Number of workers; a quarter is slow.")] = 24,
    delays: Annotated[
        str, option(CLUSTER, "Service times in milliseconds, separated by commas.")
    ] = "0.1,0.3,1",
    hetero: Annotated[
        bool, option(CLUSTER, "Run only clusters with slow workers.", "--hetero")
    ] = False,
    repetitions: Annotated[
        int,
        option(RUN, "Draws of slow workers; two more at the longest delay."),
    ] = 3,
    quick: Annotated[
        bool, option(RUN, "Four strategies at 1 ms with slow workers: ten minutes.", "--quick")
    ] = False,
    out: Annotated[Path, option(OUTPUT, "Folder for results.csv, figures and a page.")],
    conf: Conf = None,
) -> None:
    """Measure grouping strategies on a cluster with slow workers.

    Workers count words from Kafka and sleep for the service time of each message. Throughput is
    measured at saturation, latency at 80 % of key grouping's throughput (so it needs kg). Real
    words are counted too if their file exists and --messages is at least 1,000,000. The same
    command resumes an interrupted experiment.
    """
    needed = ("pyspark", "pandas", "numba", "confluent_kafka", "matplotlib", "jinja2")
    require_packages("the deployment", "deploy", *needed)
    from steelyard.deployment.deployed_strategies import STRATEGIES, strategy_named
    from steelyard.deployment.grid_plan import planned
    from steelyard.deployment.grid_settings import GridSettings
    from steelyard.deployment.run_results import ResultTable

    try:
        require_servers("servers", servers)
        require_no_file("out", out)
        spark_settings = settings_of(conf, {"spark.master": "--workers"})
        chosen = STRATEGIES
        if schemes != "all":
            chosen = tuple(strategy_named(name.strip()) for name in schemes.split(","))
        setting = GridSettings(
            workers=workers,
            delays=tuple(numbers("delays", delays)),
            strategies=chosen,
            messages=messages,
            repetitions=repetitions,
            choices=repetitions + 2 if repetitions > 1 else 1,
            homogeneous=not hetero,
        )
        if quick:
            setting = _quick_settings(setting, all_strategies=schemes == "all")
        real = _real_words(data)
        names = ["tw"] if quick or real is None or messages < 1_000_000 else ["tw", "sotu_words"]
        runs = planned(setting, names)
        setting.keep_in(out)
        require_writable("out", out)
    except (ValueError, OSError) as error:
        refuse(error)
    status_line.remove()
    table = ResultTable(out)
    failure = None
    if not all(table.find(run.empty_result) for run in runs):
        failure = _run(setting, runs, out, servers, dict.fromkeys(names, real), spark_settings)
    from steelyard.report.deployment import write_deployment_report
    from steelyard.report.deployment_summary import summary

    lines = summary(ResultTable(out).rows)
    if lines:
        write_deployment_report(lines, setting, out)
        console.print(_tables(lines, setting))
        console.print(
            f"All numbers are in {out / 'results.csv'}, the figures in {out / 'report.html'}."
        )
    if failure is not None:
        refuse(failure)


def _run(
    setting: "GridSettings",
    runs: "list[GridRun]",
    out: Path,
    servers: str | None,
    data: "dict[str, Path | None]",
    spark_settings: dict[str, str],
) -> Exception | None:
    """Run all runs without a result; return the failure that ended them, if any.

    After a failure the folder has the results so far, and the logs.
    """
    from steelyard.deployment.broker import delete, running_broker
    from steelyard.deployment.grid import Grid
    from steelyard.deployment.word_streams import load_words
    from steelyard.spark.failures import plain_failures, sentence_of

    # Signals become exceptions, so that the broker stops and paused executors run again.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    with ExitStack() as cleaning:
        scratch = Path(tempfile.mkdtemp(prefix="steelyard-deploy-"))
        cleaning.callback(shutil.rmtree, scratch, ignore_errors=True)
        progress = cleaning.enter_context(progress_bar())
        bar = progress.add_task("Starting Kafka", total=len(runs))

        def watch(run: "GridRun", slot: "Slot") -> None:
            rate = slot.messages / slot.seconds if slot.seconds else 0.0
            kind = {"no": "equal speeds", "sleep": "some slow"}.get(run.hetero, run.hetero)
            progress.update(bar, description=f"{run.strategy.name}, {kind}: {rate:,.0f} messages/s")

        try:
            address = cleaning.enter_context(running_broker(servers, scratch / "broker"))
            words = {}
            for name, folder in data.items():
                progress.update(bar, description=f"Sending {name} to Kafka")
                words[name] = load_words(address, name, setting.messages, folder)
                if servers is not None:
                    cleaning.callback(delete, servers, words[name].topic.name)
            experiment = Grid(
                setting,
                address,
                out,
                scratch,
                words,
                watch,
                lambda _: progress.advance(bar),
                spark_settings,
            )
            with plain_failures("the deployment"):
                experiment.run(runs)
        except (ValueError, RuntimeError) as error:
            kept = [log.name for log in scratch.rglob("*.log") if shutil.copy(log, out)]
            see = f" (see {', '.join(sorted(kept))} in {out})" if kept else ""
            return ValueError(f"{sentence_of(str(error))}{see}")
    return None


def _quick_settings(setting: "GridSettings", *, all_strategies: bool) -> "GridSettings":
    quick = [strategy for strategy in setting.strategies if strategy.is_quick]
    return replace(
        setting,
        delays=(1.0,),
        strategies=quick if all_strategies else setting.strategies,
        messages=min(setting.messages, 1_000_000),
        seconds=10.0,
        repetitions=1,
        choices=1,
        homogeneous=False,
        thorough=False,
    )


def _real_words(data: Path | None) -> Path | None:
    folder = data or Path("../shared/data")
    if (folder / "sotu_words.parquet").exists():
        return folder
    if data is not None:
        raise ValueError(f"data: {str(data)!r} has no file sotu_words.parquet")
    return None


def _tables(lines: "list[SummaryRow]", setting: "GridSettings") -> Group:
    """Return a table for each kind of cluster, for a terminal of 80 columns."""
    names = ("scheme", "delay", "messages/s", "efficiency", "processing", "p99", "x KG", "copies")
    tables = []
    for cluster, own in groupby(lines, lambda line: line.cluster):
        title = f"{setting.workers} workers, {cluster}"
        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
        for name in names:
            table.add_column(name, justify="left" if name == "scheme" else "right", no_wrap=True)
        for line in own:
            table.add_row(*line.cells())
        tables.append(table)
    notes = (
        "efficiency: throughput as a share of the total capacity, in wall-clock time",
        "processing: the same while workers process messages (lowest-highest)",
        "x KG: speedup over key grouping · copies: workers that hold a key, on average",
    )
    return Group(*tables, *notes)
