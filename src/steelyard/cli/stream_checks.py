"""Check the options of `steelyard stream` before Spark starts."""

from collections.abc import Mapping
from typing import Any

from steelyard.cli.checks import (
    require_files,
    require_jars,
    require_kind,
    require_no_file,
    require_port,
    require_servers,
    require_whole_slides,
)
from steelyard.durations import seconds_of
from steelyard.validation import require_whole

Options = Mapping[str, Any]
"""The values of all options, by the names of their parameters."""


def check_stream_options(options: Options) -> None:
    """Raise a ValueError that names the first bad option, or the first bad combination."""
    _check_numbers(options)
    _check_lengths_of_time(options)
    _check_window(options)
    _check_period(options)
    _check_input(options)
    _check_output(options)
    _check_control(options["control"])
    require_jars(options["jars"])


def _check_numbers(options: Options) -> None:
    require_whole("workers", options["workers"], least=1)
    require_whole("rate", options["rate"], least=1)
    if options["files_per_batch"] is not None:
        require_whole("files-per-batch", options["files_per_batch"], least=1)
    if options["virtual_workers"] is not None:
        require_whole("virtual_workers", options["virtual_workers"], least=1)
    if options["metrics_port"] is not None:
        require_port("metrics-port", options["metrics_port"])


def _check_lengths_of_time(options: Options) -> None:
    for name in ("slot", "period"):
        value = options[name]
        if value is not None and value.isdecimal():
            require_whole(name, int(value), least=1)
        elif value is not None:
            seconds_of(name, value)
    for name, least in (("window", None), ("slide", None), ("watermark", 0)):
        if options[name] is not None:
            seconds_of(name, options[name], least=least)


def _check_window(options: Options) -> None:
    for name in ("slide", "watermark", "time_column"):
        if options[name] is not None and options["window"] is None:
            raise ValueError(f"{name.removesuffix('_column')} needs a window: give --window")
    if options["window"] is not None and options["time_column"] is None:
        raise ValueError("window needs time, the column of event times: give --time")
    require_whole_slides(options["window"], options["slide"])


def _check_period(options: Options) -> None:
    period = options["period"]
    if period is None:
        return
    if not period.isdecimal() and options["window"] is None:
        raise ValueError(
            "a period of event time needs --time and --window; or give a number of batches"
        )
    if options["placement"] != "delegated" and period != "1":
        raise ValueError("period is for placement='delegated': with 'pull' workers keep nothing")


def _check_input(options: Options) -> None:
    from steelyard.spark.streaming.stream_input import FILE_INPUTS

    require_kind(options, "path", "source", *FILE_INPUTS)
    require_kind(options, "files_per_batch", "source", *FILE_INPUTS)
    require_kind(options, "topic", "source", "kafka")
    if options["servers"] is not None and "kafka" not in (options["source"], options["sink"]):
        raise ValueError("servers is for --source kafka or --sink kafka")
    require_servers("servers", options["servers"])
    if options["path"] is not None and options["master"].startswith("local"):
        require_files("path", options["path"], needs_content=options["source"] != "text")


def _check_output(options: Options) -> None:
    require_kind(options, "out", "sink", "parquet")
    for name in ("out_servers", "out_topic"):
        require_kind(options, name, "sink", "kafka")
    require_servers("out-servers", options["out_servers"])
    for name in ("out", "checkpoint", "control"):
        require_no_file(name, options[name])


def _check_control(control: str | None) -> None:
    if control is not None:
        from steelyard.control.store import ControlStore

        ControlStore(control)
