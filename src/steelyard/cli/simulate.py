"""`steelyard simulate`: simulate one configuration, from options or a file."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.table import Table

from steelyard.cli import option_values
from steelyard.cli.checks import require_folder_for
from steelyard.cli.console import console, error_console, numbers, refuse, require_packages
from steelyard.cli.dashboard import check_page, paced_run, start_page, wait_for_interrupt
from steelyard.cli.options import (
    CLUSTER,
    GROUPING,
    INPUT,
    OUTPUT,
    RUN,
    Drift,
    InputFile,
    InputFormat,
    InputKey,
    OnMalformed,
    Seed,
    SkewOfZipf,
    Ui,
    UiPort,
    is_on_command_line,
    option,
)
from steelyard.cli.own_schemes import Import
from steelyard.dashboard import wording

if TYPE_CHECKING:
    from steelyard.control.history import Slot
    from steelyard.experiments.configuration import Configuration
    from steelyard.simulator import Outcome

_MEASURES = (
    ("messages", "messages", ",.0f"),
    ("imbalance", "imbalance: largest load over mean load, minus 1", ".4f"),
    ("memory", "copies of a key, on average", ".3f"),
    ("hottest_copies", "copies of the hottest key", ",.0f"),
    ("latency_mean", "latency, mean", wording.seconds),
    ("latency_p50", "latency, median", wording.seconds),
    ("latency_p99", "latency, 99th percentile", wording.seconds),
    ("queue_length_max", "largest queue length (messages)", ",.0f"),
    ("moves", "virtual workers moved", ",.0f"),
    ("signals", "signals received", ",.0f"),
    ("slots_to_converge", "slots until no utilization is above 95 %", ".0f"),
    ("aggregation", "partial results sent to be merged", ",.0f"),
)

_FIGURES = (".png", ".svg", ".pdf")
_NOT_SETTINGS = ("config", "modules", "plot", "csv", "ui", "ui_port")


def simulate(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Argument(help="TOML file with settings named like the options.")
    ] = None,
    dataset: Annotated[str, option_values.dataset.option(INPUT, "Data set: {choices}.")] = "wp",
    fraction: Annotated[float, option(INPUT, "Fraction of the data set.")] = 0.05,
    skew: SkewOfZipf = None,
    drift: Drift = None,
    seed: Seed = 0,
    input: InputFile = None,  # noqa: A002 - the option's name
    format: InputFormat = None,  # noqa: A002
    key: InputKey = None,
    time: Annotated[str | None, option(INPUT, "Time column of CSV and Parquet files.")] = None,
    on_malformed: OnMalformed = "stop",
    scheme: Annotated[
        str, option_values.scheme.option(GROUPING, "Grouping scheme: {choices}.")
    ] = "cg",
    modules: Import = None,
    epsilon: Annotated[
        float | None, option(GROUPING, "Allowed excess load of cg, porc, ch and plans.")
    ] = None,
    virtual_workers: Annotated[
        int, option(GROUPING, "Virtual workers per worker; 0: 100 for cg, none for others.")
    ] = 0,
    rules: Annotated[
        str, option_values.rules.option(GROUPING, "Delegation rules: {choices}.")
    ] = "steady",
    sources: Annotated[int, option(GROUPING, "Number of sources, each with its own state.")] = 1,
    workers: Annotated[int, option(CLUSTER, "Number of workers.")] = 10,
    fast: Annotated[int, option(CLUSTER, "Number of fast workers.")] = 0,
    times: Annotated[float, option(CLUSTER, "Speed of a fast worker; others have 1.")] = 1.0,
    speeds: Annotated[
        str | None, option(CLUSTER, "Speed of every worker, such as 5,1,1,1.")
    ] = None,
    then: Annotated[
        list[str] | None,
        option(CLUSTER, "5,4@600000: --fast 5 --times 4 from message 600,000 on."),
    ] = None,
    service: Annotated[
        str, option_values.service.option(CLUSTER, "Service time of a message: {choices}.")
    ] = "deterministic",
    load: Annotated[float, option(RUN, "Arrival rate, as a fraction of the total capacity.")] = 0.8,
    overload: Annotated[bool, option(RUN, "Allow a load above 1.")] = False,
    slots: Annotated[
        int, option(RUN, "Number of slots; 0: one per 4,000 messages, at most 1,440.")
    ] = 0,
    quiet: Annotated[int, option(RUN, "Number of slots at the start without signals.")] = 0,
    period: Annotated[int, option(RUN, "Slots between aggregations; 0: no aggregation.")] = 0,
    plot: Annotated[Path | None, option(OUTPUT, f"Write a figure ({', '.join(_FIGURES)}).")] = None,
    csv: Annotated[Path | None, option(OUTPUT, "Write all numbers, one per row.")] = None,
    ui: Ui = False,
    ui_port: UiPort = 0,
) -> None:
    """Simulate one grouping scheme on one cluster, and print its metrics.

    Options override the settings of the file.
    """
    require_packages("a simulation", "simulate", "pandas", "numba")
    if plot is not None:
        require_packages("the figure", "simulate", "matplotlib")
    from steelyard.experiments.configuration import measured, simulated
    from steelyard.experiments.input_streams import FileStream
    from steelyard.experiments.over_time import figure_of
    from steelyard.experiments.results import COLUMNS, Results, as_table
    from steelyard.experiments.simulate_options import SimulateOptions

    check_page(ui=ui, ui_port=ui_port)
    flags = {name: v for name, v in context.params.items() if name not in _NOT_SETTINGS}
    given = {
        name: list(value) if isinstance(value, tuple | list) else value
        for name, value in flags.items()
        if is_on_command_line(context, name)
    }
    try:
        _check_files(plot, csv)
        if speeds is not None:
            given["speeds"] = numbers("speeds", speeds)
        options = SimulateOptions.of({**(SimulateOptions.read(config) if config else {}), **given})
        with error_console.status("Loading the stream"):
            configuration = options.configuration()
        with error_console.status(f"Simulating {configuration.stream.messages:,} messages"):
            outcome = simulated(configuration)
            results = Results(as_table(configuration, measured(configuration, outcome)))
    except (ValueError, OSError) as error:
        refuse(error)
    console.print(_table(results, configuration))
    if isinstance(configuration.stream, FileStream) and configuration.stream.malformed:
        console.print(f"{configuration.stream.malformed:,} malformed lines were skipped")
    if plot is not None:
        from steelyard.report.drawing import draw

        draw(figure_of(configuration), results).savefig(plot, dpi=150)
        console.print(f"The figure is {plot}")
    if csv is not None:
        results.table[COLUMNS].to_csv(csv, index=False)
    if ui:
        with error_console.status("Preparing the page"):
            run = paced_run(configuration.title, _slots(configuration, outcome))
        with start_page([run], ui_port):
            wait_for_interrupt()


def _check_files(plot: Path | None, csv: Path | None) -> None:
    if plot is not None and plot.suffix not in _FIGURES:
        raise ValueError(f"plot must end in .png, .svg or .pdf, got {str(plot)!r}")
    require_folder_for("plot", plot)
    require_folder_for("csv", csv)


def _slots(configuration: "Configuration", outcome: "Outcome") -> "list[Slot]":
    from steelyard.dashboard.simulated import slots_of
    from steelyard.experiments.input_streams import opened

    stream = configuration.stream
    return slots_of(outcome, opened(stream), lambda key: f"{stream.name}-{key}")


def _table(results: Any, configuration: Any) -> Table:
    table = Table(title=configuration.title)
    table.add_column("measure")
    table.add_column("value", justify="right")
    for metric, label, form in _MEASURES:
        rows = results.totals(metric)
        if not rows.empty:
            value = cast("float", rows["value"].iloc[0])
            text = form(value) if callable(form) else f"{value:{form}}"
            table.add_row(label, "never" if math.isnan(value) else text)
    return table
