"""`steelyard deploy`: the paper's deployment on Spark and Kafka, against what a user would pick."""

import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from steelyard.cli.console import complain, console, progress_bar, require_packages

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.report.deployment import Line
    from steelyard.spark.deployment.experiment import Run
    from steelyard.spark.deployment.settings import Setting

_QUICK = {"delays": (1.0,), "ways": ("kg", "sg", "cg-pull", "cg-delegated"), "messages": 1_000_000}


def deploy(
    out: Annotated[Path, typer.Option(help="Folder for results.csv, figures and the page.")],
    delays: Annotated[
        str, typer.Option(help="Milliseconds that a message takes, with commas between.")
    ] = "0.1,0.3,1",
    schemes: Annotated[str, typer.Option(help="Ways to group, with commas between.")] = "all",
    workers: Annotated[int, typer.Option(help="Workers; a quarter of them are slow.")] = 24,
    messages: Annotated[int, typer.Option(help="In a topic: no run takes more.")] = 6_000_000,
    repetitions: Annotated[
        int, typer.Option(help="Of each run; at the longest delay two more, with other slow ones.")
    ] = 3,
    hetero: Annotated[
        bool, typer.Option("--hetero", help="Only clusters some of whose workers are slow.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="One delay, four ways, once.")] = False,
    servers: Annotated[
        str | None, typer.Option(help="A Kafka cluster to use; else a broker is started here.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with sotu_words.parquet; ../shared/data where that is there."),
    ] = None,
) -> None:
    """Measure ways to group a stream on a cluster of which some machines are slow.

    Words come from Kafka, workers sleep for the time that a message takes. Throughput is what each
    way can do at most, latency is at 80 % of what key grouping can do. A run that was stopped goes
    on where it was.
    """
    needed = ("pyspark", "pandas", "confluent_kafka", "matplotlib", "jinja2")
    require_packages("the deployment", "deploy", *needed)
    from steelyard.spark.deployment.broker import running_broker
    from steelyard.spark.deployment.experiment import Experiment, load, planned
    from steelyard.spark.deployment.settings import WAYS, Setting

    try:
        chosen = WAYS if schemes == "all" else tuple(schemes.split(","))
        setting = Setting(
            workers=workers,
            delays=tuple(map(float, delays.split(","))),
            ways=chosen,
            messages=messages,
            repetitions=repetitions,
            choices=repetitions + 2 if repetitions > 1 else 1,
            homogeneous=not hetero,
        )
        if quick:
            setting = _quickly(setting, schemes)
        real = _real_words(data)
        names = ["tw"] if quick or real is None or messages < 1_000_000 else ["tw", "sotu_words"]
        runs = planned(setting, names)
        setting.keep_in(out)
    except (ValueError, OSError) as error:
        complain(error)
    # Whoever ends it in the middle leaves no broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as cleaning:
        scratch = Path(tempfile.mkdtemp(prefix="steelyard-deploy-"))
        cleaning.callback(shutil.rmtree, scratch, ignore_errors=True)
        progress = cleaning.enter_context(progress_bar())
        bar = progress.add_task("Starting Kafka", total=len(runs))
        try:
            address = cleaning.enter_context(running_broker(servers, scratch / "broker"))
            words = {}
            for name in names:
                progress.update(bar, description=f"Sending {name} to Kafka")
                words[name] = load(address, name, setting.messages, real)
        except ValueError as error:
            complain(error)

        def watch(run: "Run", slot: "Slot") -> None:
            rate = slot.messages / slot.seconds if slot.seconds else 0.0
            what = {"no": "alike", "sleep": "some slow"}.get(run.hetero, run.hetero)
            progress.update(bar, description=f"{run.way}, {what}: {rate:,.0f} messages/s")

        experiment = Experiment(
            setting, address, out, scratch, words, watch, lambda _: progress.advance(bar)
        )
        table = experiment.run(runs)
    from steelyard.report.deployment import summary, write_report

    lines = summary(table.rows)
    write_report(lines, setting, out)
    console.print(_shown(lines, setting))
    console.print(
        f"All numbers are in {out / 'results.csv'}, the figures in {out / 'report.html'}."
    )


def _quickly(setting: "Setting", schemes: str) -> "Setting":
    from dataclasses import replace

    less = {**_QUICK, "messages": min(setting.messages, 1_000_000)}
    if schemes != "all":
        less["ways"] = setting.ways
    return replace(setting, seconds=10.0, repetitions=1, choices=1, **less)  # type: ignore[arg-type]


def _real_words(data: Path | None) -> Path | None:
    folder = data or Path("../shared/data")
    if (folder / "sotu_words.parquet").exists():
        return folder
    if data is not None:
        raise ValueError(f"data: there is no sotu_words.parquet in {str(data)!r}")
    return None


def _shown(lines: "list[Line]", setting: "Setting") -> Table:
    table = Table(title=f"{setting.workers} workers; medians, and ranges over {setting.choices}")
    columns = (
        "cluster",
        "grouped by",
        "delay",
        "messages/s",
        "of limit",
        "at work",
        "p99",
        "x KG",
        "copies",
    )
    for name in columns:
        table.add_column(name, justify="left" if name in columns[:2] else "right")
    for line in lines:
        table.add_row(*line.cells())
    return table
