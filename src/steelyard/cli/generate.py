"""`steelyard generate`: write a data set of the paper as Parquet, with Spark."""

from pathlib import Path
from typing import Annotated

from steelyard.cli import option_values
from steelyard.cli.checks import require_new, require_writable
from steelyard.cli.console import console, error_console, refuse, require_packages
from steelyard.cli.options import INPUT, OUTPUT, Conf, Drift, Master, Seed, SkewOfZipf, option
from steelyard.cli.spark_start import running_spark, settings_of
from steelyard.validation import require_whole


def generate(
    name: Annotated[str, option_values.dataset.argument("Data set: {choices}.")],
    *,
    fraction: Annotated[float, option(INPUT, "Fraction of the full size.")] = 1.0,
    skew: SkewOfZipf = None,
    drift: Drift = None,
    seed: Seed = 0,
    out: Annotated[Path, option(OUTPUT, "Folder to write; it must not exist.")],
    partitions: Annotated[int | None, option(OUTPUT, "Number of files.")] = None,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Write a data set of the paper as Parquet with the columns message, time and key."""
    require_packages("a data set as Parquet", "doctor", "pyspark", "numba")
    from steelyard import datasets

    try:
        require_new("out", out)
        dataset = datasets.named(name, fraction=fraction, skew=skew, drift=drift, seed=seed)
        if partitions is not None:
            require_whole("partitions", partitions, least=1)
        settings = settings_of(conf)
        require_writable("out", out)
    except ValueError as error:
        refuse(error)
    from steelyard.spark.generated_messages import write

    with (
        running_spark("generate", master, settings) as spark,
        error_console.status(f"Generating {dataset.messages:,} messages"),
    ):
        write(spark, dataset, str(out), partitions)
    console.print(f"{dataset.messages:,} messages of {name} are in {out}")
