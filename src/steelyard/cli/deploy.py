"""`steelyard deploy`: the paper's deployment on Spark and Kafka, against what a user would pick."""

import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich import box
from rich.console import Group
from rich.table import Table

from steelyard.cli import option_values
from steelyard.cli.checks import require_no_file, require_servers
from steelyard.cli.console import console, numbers, progress_bar, refuse, require_packages
from steelyard.cli.options import CLUSTER, GROUPING, INPUT, OUTPUT, RUN, option

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.deployment.grid_plan import GridRun
    from steelyard.deployment.grid_settings import GridSettings
    from steelyard.report.deployment_summary import SummaryRow

_QUICK = {
    "delays": (1.0,),
    "strategies": ("kg", "sg", "cg-pull", "cg-delegated"),
    "messages": 1_000_000,
}


def deploy(
    *,
    messages: Annotated[int, option(INPUT, "In a topic: no run takes more.")] = 6_000_000,
    servers: Annotated[
        str | None, option(INPUT, "A Kafka cluster to use; else a broker is started here.")
    ] = None,
    data: Annotated[
        Path | None,
        option(INPUT, "Folder with sotu_words.parquet; ../shared/data where that is there."),
    ] = None,
    schemes: Annotated[
        str, option_values.strategies.option(GROUPING, "With commas between several: {choices}.")
    ] = "all",
    workers: Annotated[int, option(CLUSTER, "Workers; a quarter of them are slow.")] = 24,
    delays: Annotated[
        str, option(CLUSTER, "Milliseconds that a message takes, with commas between.")
    ] = "0.1,0.3,1",
    hetero: Annotated[
        bool, option(CLUSTER, "Only clusters some of whose workers are slow.", "--hetero")
    ] = False,
    repetitions: Annotated[
        int,
        option(RUN, "Draws of slow workers; two more at the longest delay. Asides run once."),
    ] = 3,
    quick: Annotated[
        bool, option(RUN, "Slow workers, 1 ms, four ways, once: in ten minutes.", "--quick")
    ] = False,
    out: Annotated[Path, option(OUTPUT, "Folder for results.csv, figures and the page.")],
) -> None:
    """Measure ways to group a stream on a cluster of which some machines are slow.

    Words come from Kafka, workers sleep for the time that a message takes. Throughput is what each
    way can do at most, latency is at 80 % of what key grouping's workers can do (so it needs kg).
    Real words are counted too if they are there and 1,000,000 messages are asked for. A run that
    was stopped goes on where it was.
    """
    needed = ("pyspark", "pandas", "confluent_kafka", "matplotlib", "jinja2")
    require_packages("the deployment", "deploy", *needed)
    from steelyard.deployment.grid_plan import planned
    from steelyard.deployment.grid_settings import STRATEGIES, GridSettings
    from steelyard.deployment.run_results import ResultTable

    try:
        require_servers("servers", servers)
        require_no_file("out", out)
        chosen = STRATEGIES if schemes == "all" else tuple(map(str.strip, schemes.split(",")))
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
            setting = _quick_settings(setting, schemes)
        real = _real_words(data)
        names = ["tw"] if quick or real is None or messages < 1_000_000 else ["tw", "sotu_words"]
        runs = planned(setting, names)
        setting.keep_in(out)
    except (ValueError, OSError) as error:
        refuse(error)
    table = ResultTable(out)
    failure = None
    if not all(table.find(run.empty_result) for run in runs):
        failure = _run(setting, runs, out, servers, dict.fromkeys(names, real))
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
) -> Exception | None:
    """Run what is missing; return the failure that ended it.

    What was measured until then is kept, and the logs are in the folder.
    """
    from steelyard.deployment.broker import delete, running_broker
    from steelyard.deployment.grid import Grid
    from steelyard.deployment.word_streams import load_words
    from steelyard.spark.failures import plain_failures, sentence_of

    # Whoever ends it in the middle leaves no broker behind, and nobody paused.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    with ExitStack() as cleaning:
        scratch = Path(tempfile.mkdtemp(prefix="steelyard-deploy-"))
        cleaning.callback(shutil.rmtree, scratch, ignore_errors=True)
        progress = cleaning.enter_context(progress_bar())
        bar = progress.add_task("Starting Kafka", total=len(runs))

        def watch(run: "GridRun", slot: "Slot") -> None:
            rate = slot.messages / slot.seconds if slot.seconds else 0.0
            what = {"no": "alike", "sleep": "some slow"}.get(run.hetero, run.hetero)
            progress.update(bar, description=f"{run.strategy}, {what}: {rate:,.0f} messages/s")

        try:
            address = cleaning.enter_context(running_broker(servers, scratch / "broker"))
            words = {}
            for name, folder in data.items():
                progress.update(bar, description=f"Sending {name} to Kafka")
                words[name] = load_words(address, name, setting.messages, folder)
                if servers is not None:
                    cleaning.callback(delete, servers, words[name].topic.name)
            experiment = Grid(
                setting, address, out, scratch, words, watch, lambda _: progress.advance(bar)
            )
            with plain_failures("the deployment"):
                experiment.run(runs)
        except (ValueError, RuntimeError) as error:
            kept = [log.name for log in scratch.rglob("*.log") if shutil.copy(log, out)]
            see = f" (see {', '.join(sorted(kept))} in {out})" if kept else ""
            return ValueError(f"{sentence_of(str(error))}{see}")
    return None


def _quick_settings(setting: "GridSettings", schemes: str) -> "GridSettings":
    from dataclasses import replace

    less = {**_QUICK, "messages": min(setting.messages, 1_000_000)}
    if schemes != "all":
        less["strategies"] = setting.strategies
    less |= {"repetitions": 1, "choices": 1, "homogeneous": False, "thorough": False}
    return replace(setting, seconds=10.0, **less)  # type: ignore[arg-type]


def _real_words(data: Path | None) -> Path | None:
    folder = data or Path("../shared/data")
    if (folder / "sotu_words.parquet").exists():
        return folder
    if data is not None:
        raise ValueError(f"data: there is no sotu_words.parquet in {str(data)!r}")
    return None


def _tables(lines: "list[SummaryRow]", setting: "GridSettings") -> Group:
    """A table for each kind of cluster, which a terminal of 80 columns has room for."""
    names = ("by", "delay", "messages/s", "clock", "at work", "p99", "x KG", "copies")
    tables = []
    for cluster, own in groupby(lines, lambda line: line.cluster):
        title = f"{setting.workers} workers, {cluster}"
        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
        for name in names:
            table.add_column(name, justify="left" if name == "by" else "right", no_wrap=True)
        for line in own:
            table.add_row(*line.cells())
        tables.append(table)
    return Group(*tables, "Of the limit: by the clock, and while workers work (lowest-highest).")
