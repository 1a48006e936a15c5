"""`steelyard generate`: a data set, made on Spark, as Parquet."""

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.console import complain, complaints, console, require_packages


def generate(
    name: Annotated[str, typer.Argument(help="zf, wp, wp-steep or tw.")],
    out: Annotated[Path, typer.Option(help="Folder to write; it must not be there yet.")],
    fraction: Annotated[float, typer.Option(help="Part of the full size.")] = 1.0,
    skew: Annotated[float | None, typer.Option(help="Zipf exponent, of zf.")] = None,
    drift: Annotated[
        int | None, typer.Option(help="Other keys are hot after every so many messages.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed gives another stream.")] = 0,
    partitions: Annotated[int | None, typer.Option(help="Files to write.")] = None,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
) -> None:
    """Write a data set of the paper as Parquet: message, time, key."""
    require_packages("a data set as Parquet", "spark", "pyspark")
    from steelyard import datasets

    try:
        dataset = datasets.named(name, fraction=fraction, skew=skew, drift=drift, seed=seed)
    except ValueError as error:
        complain(error)
    if partitions is not None and partitions < 1:
        complain(ValueError(f"partitions must be a whole number, at least 1, got {partitions}"))
    if out.exists():
        complain(ValueError(f"{str(out)!r} is there already; name another folder"))
    from steelyard.spark.generated_messages import write
    from steelyard.spark.session import session

    status = complaints.status(f"Making {dataset.messages:,} messages")
    with status, session("steelyard generate", master) as spark:
        write(spark, dataset, str(out), partitions)
    console.print(f"{dataset.messages:,} messages of {name} are in {out}")
