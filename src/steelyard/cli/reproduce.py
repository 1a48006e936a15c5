"""`steelyard reproduce`: figures of the paper, as Spark jobs."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from steelyard.cli.console import complain, console, progress_bar


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...|all", help="Experiments; all by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and the report.")] = Path(
        "reproduction"
    ),
    scale: Annotated[float, typer.Option(help="Part of the full size: 0.02 takes minutes.")] = 1.0,
    master: Annotated[
        str, typer.Option(help="Where Spark runs; its Python needs steelyard.")
    ] = "local[*]",
    data: Annotated[
        Path, typer.Option(help="Folder with real streams; used where it is there.")
    ] = Path("../shared/data"),
    listing: Annotated[bool, typer.Option("--list", help="Show the experiments.")] = False,
) -> None:
    """Reproduce figures of the paper: tables, pictures, and a page with what agrees.

    A run that was stopped goes on where it was.
    """
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
        size = experiments.Scale(scale, data if data.is_dir() else None)
    except ValueError as error:
        complain(error)
    if out.exists() and not out.is_dir():
        complain(ValueError(f"out must be a folder, {str(out)!r} is a file"))
    from steelyard.experiments.running import reproduce as run
    from steelyard.report.writing import write_report
    from steelyard.spark.session import session

    total = sum(len(e.configurations(size)) for e in chosen)
    with progress_bar() as progress:
        bar = progress.add_task("Starting Spark", total=total)
        with session("steelyard reproduce", master) as spark:
            progress.update(bar, description="Simulating")
            results = run(spark, chosen, out, size, lambda done: progress.advance(bar, done))
        drawing = progress.add_task("Drawing", total=len(chosen))
        claims = write_report(chosen, results, out, scale, lambda: progress.advance(drawing))
    table = Table("experiment", "agrees", "does not", "no verdict", "figure")
    for name, made in claims.items():
        counts = [sum(c.agrees is verdict for c in made) for verdict in (True, False, None)]
        table.add_row(name, *map(str, counts), f"{name}.png")
    console.print(table)
    console.print(f"Open {out / 'report.html'} to see every figure beside its claims.")
