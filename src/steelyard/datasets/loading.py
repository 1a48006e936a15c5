"""Load keyed streams from files.

A file, or a folder of files, enters; one table of messages (`time` in seconds, `key`) leaves,
with the numbers of lines and of malformed lines. Files are read in blocks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from steelyard.datasets.formats import (
    CsvRows,
    LineFormat,
    TableFormat,
    in_short,
    named,
    require_columns,
)

BLOCK_BYTES = 8 << 20
LONGEST_LINE = 1 << 30
GOOD_TIME = "a time of at least 0 seconds"
_GZIP = b"\x1f\x8b\x08"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SUFFIXES = {"csv": "csv", "parquet": "parquet", "pq": "parquet"}
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}

OnMalformed = Literal["stop", "skip"]


class MalformedInput(ValueError):  # noqa: N818
    """A line or row is not a valid message."""


@dataclass(frozen=True)
class Loaded:
    """Messages in the order of the file names and of the lines in each file.

    `lines` counts all lines, including malformed ones; for tables it counts the rows.
    """

    messages: pa.Table
    malformed: int
    lines: int


def load(
    path: str | PathLike[str],
    format: str,  # noqa: A002
    *,
    key: str | None = None,
    time: str | None = None,
    on_malformed: OnMalformed = "stop",
) -> Loaded:
    r"""Load the messages of a file, or of all files below a folder.

    Text files may be compressed with gzip, regardless of their names. Files and folders below
    `path` whose names begin with `.` or `_` are ignored. All csv files of a folder must have the
    same header.

    Args:
        path: A file or a folder.
        format: "wikibench", "words", "csv" or "parquet".
        key: The column of the keys, for csv and parquet. Keys keep their type (text for csv) and
            their nulls.
        time: The column of the times, for csv and parquet; None makes all times null. Numbers
            are epoch seconds. Timestamps are converted to epoch seconds, in UTC if they have no
            time zone. A row is malformed unless its time is finite and at least 0.
        on_malformed: "stop" raises an error at the first malformed line; "skip" skips malformed
            lines and counts them.

    Raises:
        MalformedInput: A line or row is malformed, and `on_malformed` is "stop".

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "texts.tsv")
    ...     _ = path.write_text("1\tto be\nlater\tor not\n2\tto be")
    ...     loaded = load(path, "words", on_malformed="skip")
    >>> loaded.messages["key"].to_pylist()
    ['to', 'be', 'to', 'be']
    >>> loaded.malformed, loaded.lines
    (1, 3)
    """
    wanted = checked_format(format, key, time, on_malformed)
    files = _files(Path(path))
    stop = on_malformed == "stop"
    if not isinstance(wanted, TableFormat):
        return _joined(_from_lines(files, wanted, stop))
    assert key is not None
    if wanted.name == "csv":
        return _joined(_from_lines(files, _csv_rows(files, key, time), stop, header_lines=1))
    return _joined(_from_parquet(files, key, time, stop))


def format_of(path: str | PathLike[str]) -> str:
    """Return the format that the name of a file says, or the names of all files in a folder.

    Raises:
        ValueError: The names say no format, or several.

    >>> format_of("visits.parquet"), format_of("visits.CSV.gz")
    ('parquet', 'csv')
    >>> format_of("visits.txt")
    Traceback (most recent call last):
    ...
    ValueError: the name 'visits.txt' does not say its format: pass the format
    """
    files = _files(Path(path)) if Path(path).is_dir() else [Path(path)]
    names = (file.name.lower().removesuffix(".gz") for file in files)
    known = {_SUFFIXES.get(name.rpartition(".")[2]) for name in names}
    found = known.pop()
    if known or found is None:
        raise ValueError(f"the name {str(path)!r} does not say its format: pass the format")
    return found


def checked_format(
    name: str, key: str | None, time: str | None, on_malformed: str
) -> LineFormat | TableFormat:
    """Return the format with this name; raise a ValueError if a setting does not suit it.

    Args:
        name: The name of the format.
        key: The column of the keys; required for tables, not allowed for lines of text.
        time: The column of the times; not allowed for lines of text.
        on_malformed: "stop" or "skip".
    """
    if on_malformed not in ("stop", "skip"):
        raise ValueError(f"on_malformed must be 'stop' or 'skip', got {on_malformed!r}")
    wanted = named(name)
    if isinstance(wanted, TableFormat):
        if key is None:
            raise ValueError(f"the format {name} needs key=, the name of the key column")
    elif key is not None or time is not None:
        raise ValueError(f"the format {name} has no columns: do not pass key= or time=")
    return wanted


def complaint(where: str, text: str, shape: str) -> str:
    """Return the error message about malformed input."""
    remedy = 'on_malformed="skip" skips and counts malformed input'
    return f"{where} is malformed: {text} is not {shape}; {remedy}"


def _joined(parts: Iterable[Loaded]) -> Loaded:
    read = list(parts)
    return Loaded(
        messages=pa.concat_tables(part.messages for part in read),
        malformed=sum(part.malformed for part in read),
        lines=sum(part.lines for part in read),
    )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}")
    files = sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and not any(name.startswith((".", "_")) for name in file.relative_to(path).parts)
    )
    if not files:
        raise FileNotFoundError(f"the folder {str(path)!r} holds no files")
    return files


def _from_lines(
    files: list[Path], line_format: LineFormat, stop: bool, header_lines: int = 0
) -> Iterator[Loaded]:
    yield Loaded(line_format.parse(pa.array([], pa.binary())).messages, 0, 0)
    for file in files:
        above = 0
        for lines in _blocks(file):
            body = lines[max(header_lines - above, 0) :]
            parsed = line_format.parse(body)
            if stop and parsed.first_malformed is not None:
                number = above + len(lines) - len(body) + parsed.first_malformed + 1
                text = in_short(body[parsed.first_malformed].as_py())
                where = f"{file}, line {number},"
                raise MalformedInput(complaint(where, text, line_format.shape))
            yield Loaded(parsed.messages, parsed.malformed, len(body) - parsed.blank)
            above += len(lines)


def _blocks(file: Path) -> Iterator[pa.Array]:
    """Yield the lines of a file without newlines, about `BLOCK_BYTES` at a time."""
    with file.open("rb") as start:
        compression = "gzip" if start.read(3) == _GZIP else None
    begun: list[bytes] = []  # the pieces of a line that continues in the next block
    with pa.input_stream(str(file), compression=compression) as stream:
        try:
            first = stream.read(BLOCK_BYTES + 3).removeprefix(_BYTE_ORDER_MARK)
            for block in chain([first], iter(lambda: stream.read(BLOCK_BYTES), b"")):
                end = block.rfind(b"\n")
                if end >= 0:
                    yield _split(b"".join((*begun, block[:end])))
                    begun = []
                begun.append(block[end + 1 :])
                if sum(map(len, begun)) > LONGEST_LINE:
                    raise ValueError(f"{file} has a line of more than {LONGEST_LINE:,} bytes")
        except OSError as error:
            raise OSError(f"{file} cannot be read completely: {error}") from error
    if rest := b"".join(begun):
        yield _split(rest)


def _split(text: bytes) -> pa.Array:
    return pc.split_pattern(pa.array([text], pa.binary()), "\n").flatten()


def _csv_rows(files: list[Path], key: str, time: str | None) -> CsvRows:
    headers = {}
    for file in files:
        for lines in _blocks(file):
            headers[file] = lines[0].as_py().removesuffix(b"\r")
            break
    if not headers:
        raise ValueError(f"{files[0]} has no header line, so it has no columns")
    first, header = next(iter(headers.items()))
    for file, other in headers.items():
        if other != header:
            raise ValueError(
                f"{file} has another header than {first}; load files with different headers "
                "one by one"
            )
    try:
        return CsvRows.below(header, key, time)
    except ValueError as error:
        raise ValueError(f"{first}: {error}") from None


def _from_parquet(files: list[Path], key: str, time: str | None, stop: bool) -> Iterator[Loaded]:
    schema = pa.schema({"time": pa.float64(), "key": _key_type(files, key, time)})
    yield Loaded(schema.empty_table(), 0, 0)
    columns = list({key, time or key})
    for file in files:
        above = 0
        with pq.ParquetFile(file) as table:
            for batch in table.iter_batches(columns=columns):
                keys = batch.column(key)
                times = pa.nulls(len(batch), pa.float64())
                malformed = np.empty(0, np.int64)
                if time is not None:
                    seconds = _seconds(batch.column(time))
                    good = np.isfinite(seconds) & (seconds >= 0)
                    malformed = np.flatnonzero(~good)
                    times, keys = seconds[good], keys.filter(pa.array(good))
                if stop and malformed.size:
                    row = int(malformed[0])
                    text = in_short(str(batch.column(time)[row].as_py()))
                    where = f"{file}, row {above + row + 1},"
                    raise MalformedInput(complaint(where, text, GOOD_TIME))
                messages = pa.table({"time": times, "key": keys})
                yield Loaded(messages, malformed.size, len(batch))
                above += len(batch)


def _key_type(files: list[Path], key: str, time: str | None) -> pa.DataType:
    """Return the type of the keys; raise a ValueError if a file does not have the columns."""
    kinds = {}
    for file in files:
        try:
            schema = pq.read_schema(file)
            require_columns(schema.names, key, time)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        if time is not None and not _is_time(schema.field(time).type):
            kind = schema.field(time).type
            raise ValueError(f"{file}: {time!r} must hold numbers or timestamps, got {kind}")
        kinds[schema.field(key).type] = file
    if len(kinds) > 1:
        found = ", ".join(f"{kind} in {file}" for kind, file in kinds.items())
        raise ValueError(f"the key column {key!r} must have one type in all files, got {found}")
    return next(iter(kinds))


def _is_time(kind: pa.DataType) -> bool:
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return pa.types.is_timestamp(kind) or any(is_kind(kind) for is_kind in numbers)


def _seconds(times: pa.Array) -> NDArray[np.float64]:
    """Return epoch seconds, NaN for null."""
    per_second = 1
    if pa.types.is_timestamp(times.type):
        unit = times.type.unit
        times = times.cast(pa.int64())
        if unit == "ns":  # finer than the precision of epoch seconds
            times, unit = pc.divide(times, 1000), "us"
        per_second = _PER_SECOND[unit]
    numbers = times.cast(pa.float64(), safe=False)
    seconds: NDArray[np.float64] = numbers.to_numpy(zero_copy_only=False) / per_second
    return seconds
