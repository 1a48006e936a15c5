"""Options that several commands share, and the panels of the help."""

from typing import Annotated, Any

import typer

from steelyard.cli import option_values
from steelyard.cli.name_values import CONF, SOURCE_OPTIONS

INPUT = "Input"
GROUPING = "Grouping"
WINDOW = "Window"
CLUSTER = "Cluster"
RUN = "Run"
OUTPUT = "Output"
PAGE = "Page"
SPARK = "Spark"


def option(panel: str, text: str, *names: str) -> Any:
    """Declare an option in a panel of the help; by default the parameter names the option."""
    return typer.Option(*names, help=text, rich_help_panel=panel)


def is_on_command_line(context: typer.Context, name: str) -> bool:
    """Whether the user gives this option, so that its value is not the default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


Servers = Annotated[str | None, option(INPUT, "host:port of the Kafka servers to read from.")]
Topic = Annotated[str | None, option(INPUT, "Kafka topic to read.")]
Seed = Annotated[
    int, option(INPUT, "Seed of all random numbers: messages, hash functions and service times.")
]
Skew = Annotated[float, option(INPUT, "Zipf exponent of the keys; 0 is uniform.")]
InputFile = Annotated[
    str | None, option(INPUT, "File or folder of messages instead of a data set.")
]
InputFormat = Annotated[
    str | None,
    option_values.message_format.option(
        INPUT, "Format of the input, if file names do not say it: {choices}."
    ),
]
InputKey = Annotated[str | None, option(INPUT, "Key column of CSV and Parquet files.")]
OnMalformed = Annotated[
    str, option_values.on_malformed.option(INPUT, "How to handle malformed lines: {choices}.")
]
SkewOfZipf = Annotated[float | None, option(INPUT, "Zipf exponent of the data set zf.")]
Drift = Annotated[int | None, option(INPUT, "Messages after which other keys become hot.")]
ReportKeys = Annotated[
    str | None, option_values.report_keys.option(OUTPUT, "How keys are named: {choices}.")
]
Master = Annotated[str, option(SPARK, "Master URL of Spark.")]
Jars = Annotated[str | None, option(SPARK, "Jars such as Kafka's, separated by commas.")]
Conf = Annotated[
    list[str] | None,
    CONF.option(
        SPARK,
        "Setting of Spark, as NAME=VALUE. For secrets, NAME=env:VARIABLE reads the value from the "
        "environment, and @FILE reads settings from a file. Repeatable.",
    ),
]
SourceOption = Annotated[
    list[str] | None,
    SOURCE_OPTIONS.option(
        INPUT,
        "Option of the source, as NAME=VALUE. @FILE and env: work as in --conf. Repeatable.",
        "--option",
    ),
]
Ui = Annotated[bool, option(OUTPUT, "Show the workers live on a local page.", "--ui")]
UiPort = Annotated[int, option(OUTPUT, "Port of that page; 0: any free port.")]
