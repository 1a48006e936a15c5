"""Options that several commands have, and the panels in which the help shows them."""

from typing import Annotated, Any

import typer

INPUT = "Input"
GROUPING = "Grouping"
WINDOW = "Window"
CLUSTER = "Cluster"
RUN = "Run"
OUTPUT = "Output"
PAGE = "Page"
SPARK = "Spark"


def option(panel: str, text: str, *names: str) -> Any:
    """Declare an option in a panel of the help; without names its parameter names it."""
    return typer.Option(*names, help=text, rich_help_panel=panel)


Servers = Annotated[str | None, option(INPUT, "Kafka's host:port to read from.")]
Topic = Annotated[str | None, option(INPUT, "Kafka's topic to read.")]
Seed = Annotated[int, option(INPUT, "Another seed gives another stream.")]
Skew = Annotated[float, option(INPUT, "Zipf exponent of the keys: 0 is uniform.")]
SkewOfZipf = Annotated[float | None, option(INPUT, "Zipf exponent, of zf.")]
Drift = Annotated[
    int | None, option(INPUT, "Number of messages after which other keys become hot.")
]
Master = Annotated[str, option(SPARK, "Where Spark runs.")]
Jars = Annotated[str | None, option(SPARK, "Jars for Spark, such as Kafka's, with commas between.")]
Ui = Annotated[bool, option(OUTPUT, "Show it live on a page, on this machine.", "--ui")]
UiPort = Annotated[int, option(OUTPUT, "Of that page; 0: any free one.")]
