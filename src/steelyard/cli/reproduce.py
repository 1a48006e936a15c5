"""`steelyard reproduce`: reproduce figures of the paper with Spark jobs."""

from pathlib import Path
from typing import Annotated

from rich.table import Table

from steelyard.cli import option_values
from steelyard.cli.checks import require_no_file, require_writable
from steelyard.cli.console import console, progress_bar, refuse, require_packages
from steelyard.cli.options import INPUT, OUTPUT, RUN, SPARK, Conf, option
from steelyard.cli.spark_start import running_spark, settings_of


def reproduce(
    names: Annotated[
        list[str] | None,
        option_values.experiment.argument(
            "Experiments, all by default: {choices}.", metavar="NAME...|all"
        ),
    ] = None,
    data: Annotated[
        Path | None, option(INPUT, "Folder with real streams; ../shared/data if it exists.")
    ] = None,
    scale: Annotated[float, option(RUN, "Fraction of the full size; 0.02 takes minutes.")] = 1.0,
    listing: Annotated[bool, option(RUN, "List the experiments.", "--list")] = False,
    out: Annotated[Path, option(OUTPUT, "Folder for tables, figures and the report.")] = Path(
        "reproduction"
    ),
    master: Annotated[
        str, option(SPARK, "Master URL of Spark; executors need steelyard.")
    ] = "local[*]",
    conf: Conf = None,
) -> None:
    """Reproduce figures of the paper, and compare them with its claims.

    The folder gets tables, figures and a page. The same command resumes an interrupted run.
    """
    needed = ["pandas", "numba"] + ([] if listing else ["pyspark", "matplotlib", "jinja2"])
    require_packages("a reproduction", "reproduce", *needed)
    from steelyard import experiments

    if listing:
        table = Table("name", "figure")
        for name in experiments.names():
            table.add_row(name, experiments.named(name).title)
        console.print(table)
        return
    try:
        wanted = names or ["all"]
        chosen = [
            experiments.named(name)
            for name in (experiments.names() if "all" in wanted else dict.fromkeys(wanted))
        ]
        require_no_file("out", out)
        settings = settings_of(conf)
        size = experiments.Scale(scale, _real_streams(data))
        total = sum(len(e.configurations(size)) for e in chosen)
        out.mkdir(parents=True, exist_ok=True)
        require_writable("out", out)
    except (ValueError, OSError) as error:
        refuse(error)
    from steelyard.experiments.execution import finished
    from steelyard.experiments.execution import reproduce as run
    from steelyard.report.writing import write_report

    with running_spark("reproduce", master, settings) as spark, progress_bar() as progress:
        bar = progress.add_task("Simulating", total=total)
        run(spark, chosen, out, size, lambda done: progress.advance(bar, done))
    with progress_bar() as progress:
        # The page shows all results in the folder, not only those of this command.
        results = finished(out, size, experiments.names())
        drawing = progress.add_task("Drawing", total=len(results))
        claims = write_report(results, out, scale, lambda: progress.advance(drawing))
    table = Table("experiment", "agrees", "does not", "no verdict", "figure")
    for name, made in claims.items():
        counts = [sum(c.agrees is verdict for c in made) for verdict in (True, False, None)]
        table.add_row(name, *map(str, counts), f"{name}.png")
    console.print(table)
    console.print(f"Open {out / 'report.html'} to see every figure beside its claims.")


def _real_streams(data: Path | None) -> Path | None:
    if data is None:
        usual = Path("../shared/data")
        return usual.resolve() if usual.is_dir() else None
    if not data.is_dir():
        raise ValueError(f"data must be an existing folder, got {str(data)!r}")
    return data.resolve()
