"""Check the options of `steelyard stream`, and turn them into objects of the API."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli.checks import (
    is_local,
    require_files,
    require_free_port,
    require_jars,
    require_kind,
    require_no_file,
    require_servers,
    require_writable,
)
from steelyard.cli.name_values import SINK_OPTIONS, SOURCE_OPTIONS, require_not_given
from steelyard.durations import seconds_of
from steelyard.validation import require_whole
from steelyard.windows import Window

if TYPE_CHECKING:
    from steelyard.placements import Placement

REAL_TIME = "real-time"
"""The value of --placement for Spark's real-time mode."""

Options = Mapping[str, Any]
"""The values of all options, by the names of their parameters."""

_OF_THE_SOURCE = {
    "kafka.bootstrap.servers": "--servers",
    "subscribe": "--topic",
    "path": "--path",
    "rowspersecond": "--rate",
    "maxfilespertrigger": "--files-per-batch",
}
"""The options of a source that options of the command set."""

_OF_THE_SINK = {
    "kafka.bootstrap.servers": "--out-servers",
    "topic": "--out-topic",
    "path": "--out",
    "checkpointlocation": "--checkpoint",
}
"""The options of a sink that options of the command set."""


def with_settings(options: Options) -> dict[str, Any]:
    """Return the options with the settings of --option and --out-option in place of their texts."""
    return {
        **options,
        "source_option": SOURCE_OPTIONS.settings(options["source_option"]),
        "sink_option": SINK_OPTIONS.settings(options["sink_option"]),
    }


def check_stream_options(options: Options) -> None:
    """Refuse bad options and bad combinations of options."""
    _check_numbers(options)
    window_of(options)
    placement_of(options)
    slot_of(options)
    _check_input(options)
    _check_output(options)
    _check_control(options["control"])
    require_jars(options["jars"])
    require_not_given("option", options["source_option"], _OF_THE_SOURCE)
    require_not_given("out-option", options["sink_option"], _OF_THE_SINK)


def own_settings(options: Options) -> dict[str, str]:
    """Return the option for each setting of Spark that --conf must not set."""
    own = {"spark.master": "--master", "spark.jars": "--jars"}
    if options["placement"] != "pull":  # each worker has one partition of the state
        own["spark.sql.shuffle.partitions"] = "--workers"
    return own


def _check_numbers(options: Options) -> None:
    require_whole("workers", options["workers"], least=1)
    if options["rate"] is not None:
        require_whole("rate", options["rate"], least=1)
    if options["files_per_batch"] is not None:
        require_whole("files-per-batch", options["files_per_batch"], least=1)
    if options["metrics_port"] is not None:
        require_free_port("metrics-port", options["metrics_port"])


def window_of(options: Options) -> Window | None:
    """Return the windows, or None without --window."""
    for name in ("slide", "watermark", "time_column"):
        if options[name] is not None and options["window"] is None:
            raise ValueError(f"{name.removesuffix('_column')} needs a window: pass --window")
    if options["window"] is None:
        return None
    if options["time_column"] is None:
        raise ValueError("window needs a column of event times: pass --time")
    names = ("time_column", "window", "slide", "watermark")
    return Window(*(options[name] for name in names))


def placement_of(options: Options) -> "Placement":
    """Return the placement of the workers."""
    from steelyard.placements import Delegated, Pull, RealTime

    virtual_workers, tasks = options["virtual_workers"], options["tasks_per_worker"]
    if options["placement"] == REAL_TIME:
        _check_real_time(options)
        return RealTime(100 if virtual_workers is None else virtual_workers)
    if options["placement"] == "delegated":
        if tasks is not None:
            raise ValueError(
                "--tasks-per-worker works only with --placement pull; pass --virtual-workers "
                "instead"
            )
        period = _number_or_length(options["period"])
        if isinstance(period, str) and options["window"] is None:
            raise ValueError(
                "a period of event time needs --time and --window; or pass a number of "
                "micro-batches"
            )
        placement = Delegated(100 if virtual_workers is None else virtual_workers, period)
        # In a run that ends, nothing may wait for the end of a period that never comes.
        return replace(placement, period=1) if options["once"] else placement
    if virtual_workers is not None:
        raise ValueError(
            "--virtual-workers works only with --placement delegated; pass --tasks-per-worker "
            "instead"
        )
    if options["period"] is not None:
        raise ValueError(
            "--period works only with --placement delegated: with --placement pull a worker keeps "
            "no state between micro-batches"
        )
    return Pull(1 if tasks is None else tasks)


def _check_real_time(options: Options) -> None:
    """Refuse options that have no effect in real-time mode, or that it cannot run with."""
    for name in ("source", "sink"):
        if options[name] != "kafka":
            raise ValueError(
                f"placement real-time needs --{name} kafka, not {options[name]}: Spark's real-time "
                "mode reads and writes Kafka"
            )
    for name in ("once", "tasks_per_worker", "period", "window"):
        if options[name]:
            raise ValueError(
                f"{name.replace('_', '-')} has no effect with --placement real-time; leave it out, "
                "or use --placement pull or delegated"
            )


def slot_of(options: Options) -> int | str:
    """Return the length of a slot: a number of micro-batches, or a length of time."""
    slot = _number_or_length(options["slot"])
    if isinstance(slot, str):
        seconds_of("slot", slot)
    else:
        require_whole("slot", slot, least=1)
    return slot


def _number_or_length(text: str | None) -> int | str:
    """Parse a number of micro-batches, by default one; else return a length of time."""
    return int(text or 1) if text is None or text.isdecimal() else text


def _check_input(options: Options) -> None:
    from steelyard.spark.streaming.stream_input import FILE_INPUTS

    require_kind(options, "rate", "source", "rate")
    require_kind(options, "path", "source", *FILE_INPUTS)
    require_kind(options, "files_per_batch", "source", *FILE_INPUTS)
    require_kind(options, "topic", "source", "kafka")
    if options["servers"] is not None and "kafka" not in (options["source"], options["sink"]):
        raise ValueError("servers needs --source kafka or --sink kafka")
    require_servers("servers", options["servers"])
    if options["path"] is not None and options["master"].startswith("local"):
        require_files("path", options["path"], needs_content=options["source"] != "text")


def _check_output(options: Options) -> None:
    if options["sink_option"] and options["sink"] == "console":
        raise ValueError("out-option needs --sink parquet or --sink kafka")
    require_kind(options, "out", "sink", "parquet")
    for name in ("out_servers", "out_topic"):
        require_kind(options, name, "sink", "kafka")
    require_servers("out-servers", options["out_servers"])
    for name in ("out", "checkpoint", "control"):
        require_no_file(name, options[name])
        if options[name] is not None and is_local(options[name]):
            require_writable(name, Path(options[name]))


def _check_control(control: str | None) -> None:
    if control is not None:
        from steelyard.control.store import ControlStore

        ControlStore(control)
