"""Parse lines of text into messages, for several formats of keyed streams.

A chunk of lines enters; a table of messages and the number of malformed lines leave. No line
raises an error: malformed lines are counted.
"""

import csv as python_csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_VISIBLE = r"[^\t-\r ]"  # any character but a space, \t, \n, \v, \f and \r
_REQUEST = rf"\A[0-9]+ {_NUMBER} {_VISIBLE}+ (?:-|save)\r?\z"
_TIMED_WORDS = rf"\A{_NUMBER}\t[^\t-\r]*{_VISIBLE}[^\t-\r]*\r?\z"
_BLANK = r"\A\r?\z"
# A quoted cell must end on its line; otherwise one stray quote would swallow the rows after it.
_CELL = r'(?:"(?:[^"\n]|"")*"|[^",\r\n][^,\r\n]*)?'
_ROW = rf"\A{_CELL}(?:,{_CELL})*\r?\z"
_UTF8 = (
    r"\A(?:[\x00-\x7F]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]"
    r"|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}|\xED[\x80-\x9F][\x80-\xBF]"
    r"|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}|\xF4[\x80-\x8F][\x80-\xBF]{2})*\z"
)


@dataclass(frozen=True)
class Parsed:
    """The messages of some lines (`time` in seconds, `key`) and the number of malformed lines.

    `first_malformed` is the index of the first malformed line; `blank` counts the empty lines
    that the format ignores.
    """

    messages: pa.Table
    malformed: int
    first_malformed: int | None
    blank: int = 0


class LineFormat(Protocol):
    """A format that writes messages as lines of UTF-8 text.

    Lines have no newline and are strings or bytes. One carriage return at the end of a line is
    ignored. Times are epoch seconds: digits, optional decimals and an optional exponent; they
    must be finite. Null, blank and undecodable lines are malformed, but csv ignores empty lines.
    """

    @property
    def name(self) -> str:
        """The name of the format."""

    @property
    def shape(self) -> str:
        """A short description of a valid line, for error messages."""

    def parse(self, lines: pa.Array | pa.ChunkedArray) -> Parsed:
        """Parse less than 2 GiB of lines into messages in the same order."""


@dataclass(frozen=True)
class Wikibench:
    """Requests to Wikipedia, as in the Wikibench traces: `counter seconds url flag`.

    One space separates the fields. The url is the key. The flag is `save` for a request that
    changed the page, and `-` for other requests.

    >>> line = "929840891 1190146243.326 http://en.wikipedia.org/wiki/Main_Page -"
    >>> parsed = Wikibench().parse(pa.array([line, "929840892 yesterday http://a.org -"]))
    >>> parsed.messages.to_pylist()
    [{'time': 1190146243.326, 'key': 'http://en.wikipedia.org/wiki/Main_Page'}]
    >>> parsed.malformed, parsed.first_malformed
    (1, 1)
    """

    name: ClassVar[str] = "wikibench"
    shape: ClassVar[str] = "`counter seconds url flag`"

    def parse(self, lines: pa.Array | pa.ChunkedArray) -> Parsed:
        raw = _raw(lines)
        good = _matches(raw, _REQUEST) & _decodable(raw)
        fields = pc.split_pattern(raw.filter(pa.array(good)), " ").flatten()
        times = _numbers(_every(fields, 1, 4))
        finite = np.isfinite(times)
        keys = _every(fields, 2, 4).view(pa.string()).filter(pa.array(finite))
        good[good] = finite
        return _parsed(times[finite], keys, good)


@dataclass(frozen=True)
class TimedWords:
    r"""Texts with their times: `seconds<TAB>word word ...`; every word is a message.

    One or more spaces separate the words; a text without words is malformed.

    >>> parsed = TimedWords().parse(pa.array(["12.5\tto be  or", "13\t", "14\tnot"]))
    >>> parsed.messages["key"].to_pylist()
    ['to', 'be', 'or', 'not']
    >>> parsed.messages["time"].to_pylist()
    [12.5, 12.5, 12.5, 14.0]
    >>> parsed.malformed, parsed.first_malformed
    (1, 1)
    """

    name: ClassVar[str] = "words"
    shape: ClassVar[str] = "`seconds<TAB>word word ...`"

    def parse(self, lines: pa.Array | pa.ChunkedArray) -> Parsed:
        raw = _raw(lines)
        good = _matches(raw, _TIMED_WORDS) & _decodable(raw)
        fields = pc.split_pattern(raw.filter(pa.array(good)), "\t").flatten()
        times = _numbers(_every(fields, 0, 2))
        finite = np.isfinite(times)
        texts = _every(fields, 1, 2).view(pa.string()).filter(pa.array(finite))
        pieces = pc.ascii_split_whitespace(texts)
        words = pieces.flatten()
        is_word = pc.not_equal(words, "")  # leading and trailing spaces leave empty pieces
        times = np.repeat(times[finite], pc.list_value_length(pieces).to_numpy())
        good[good] = finite
        return _parsed(times[is_word.to_numpy(zero_copy_only=False)], words.filter(is_word), good)


@dataclass(frozen=True)
class CsvRows:
    """Rows of comma-separated cells, below a header with the names of the columns.

    All cells are text, so the keys `007` and `7` are different; an empty cell is null. A row is
    one line. Empty lines are ignored.

    >>> rows = CsvRows(("user", "when"), key="user", time="when")
    >>> parsed = rows.parse(pa.array(['"Ash, Ann",5', "Bob,soon", "Cem", ",7.5"]))
    >>> parsed.messages.to_pylist()
    [{'time': 5.0, 'key': 'Ash, Ann'}, {'time': 7.5, 'key': None}]
    >>> parsed.malformed, parsed.first_malformed
    (2, 1)
    """

    columns: tuple[str, ...]
    key: str
    time: str | None = None

    name: ClassVar[str] = "csv"

    @classmethod
    def below(cls, header: bytes, key: str, time: str | None = None) -> "CsvRows":
        """Create the format of the rows below a header line; raise a ValueError if it is bad.

        >>> CsvRows.below(b"user,when", key="person")
        Traceback (most recent call last):
        ...
        ValueError: there is no column 'person'; the columns are: user, when
        """
        try:
            (columns,) = python_csv.reader([header.decode().removesuffix("\r")], strict=True)
        except (UnicodeDecodeError, python_csv.Error):
            columns = []
        if not columns:
            raise ValueError(f"{in_short(header)} is not a valid header line")
        require_columns(columns, key, time)
        return cls(tuple(columns), key, time)

    @property
    def shape(self) -> str:
        """A short description of a valid line, for error messages."""
        cells = f"a row of {len(self.columns)} cells"
        return cells if self.time is None else f"{cells} with seconds in {self.time!r}"

    def parse(self, lines: pa.Array | pa.ChunkedArray) -> Parsed:
        raw = _raw(lines)
        blank = _matches(raw, _BLANK)
        good = _matches(raw, _ROW) & _decodable(raw) & ~blank
        cells, has_all_cells = self._cells(raw.filter(pa.array(good)))
        good[good] = has_all_cells
        keys = cells.column(0)
        if self.time is None:
            return _parsed(pa.nulls(len(keys), pa.float64()), keys, good, blank)
        times = cells.column(1).combine_chunks()
        is_number = _matches(times.cast(pa.binary()), rf"\A{_NUMBER}\z")
        seconds = np.full(len(times), np.inf)
        seconds[is_number] = _numbers(times.filter(pa.array(is_number)))
        finite = np.isfinite(seconds)
        good[good] = finite
        return _parsed(seconds[finite], keys.filter(pa.array(finite)), good, blank)

    def _cells(self, rows: pa.Array) -> tuple[pa.Table, NDArray[np.bool_]]:
        """Return the key and time cells, and for every row whether it has all its cells."""
        wanted = [self.key] if self.time is None else [self.key, self.time]
        numbers = [str(self.columns.index(column)) for column in wanted]
        has_all_cells = np.ones(1 + len(rows), np.bool_)

        def skip(row: csv.InvalidRow) -> str:
            has_all_cells[row.number - 1] = False
            return "skip"

        # Arrow removes a byte order mark from the first row, so a dummy row goes first.
        first = pa.array([b"-" + b"," * (len(self.columns) - 1)])
        lines = pa.ListArray.from_arrays([0, 1 + len(rows)], pa.concat_arrays([first, rows]))
        text = pc.binary_join(lines, b"\n")[0].as_buffer()
        cells = csv.read_csv(
            pa.BufferReader(text),
            csv.ReadOptions(
                column_names=[str(number) for number in range(len(self.columns))],
                use_threads=False,  # Arrow numbers rows only in a single thread
                block_size=text.size + 1,
            ),
            csv.ParseOptions(ignore_empty_lines=False, invalid_row_handler=skip),
            csv.ConvertOptions(
                include_columns=numbers,
                column_types=dict.fromkeys(numbers, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        return cells.slice(1), has_all_cells[1:]


@dataclass(frozen=True)
class TableFormat:
    """A format of rows with named columns; the caller names the key column."""

    name: str


FORMATS: tuple[LineFormat | TableFormat, ...] = (
    Wikibench(),
    TimedWords(),
    TableFormat("csv"),
    TableFormat("parquet"),
)


def named(name: str) -> LineFormat | TableFormat:
    """Return the format with this name.

    >>> named("words")
    TimedWords()
    >>> named("xml")
    Traceback (most recent call last):
    ...
    ValueError: no format is named 'xml'; the formats are: wikibench, words, csv, parquet
    """
    for known in FORMATS:
        if known.name == name:
            return known
    names = ", ".join(known.name for known in FORMATS)
    raise ValueError(f"no format is named {name!r}; the formats are: {names}")


def require_columns(columns: Sequence[str], key: str, time: str | None) -> None:
    """Raise a ValueError unless each wanted column exists exactly once."""
    for wanted in (key, time):
        count = columns.count(wanted)
        if wanted is not None and count != 1:
            there = f"there are {count} columns" if count else "there is no column"
            raise ValueError(f"{there} {wanted!r}; the columns are: {', '.join(columns)}")


def in_short(text: bytes | str) -> str:
    r"""Return the first 60 characters in quotes, with control characters escaped.

    >>> print(in_short(b"bell \x07, broken \xff, fine \xc3\xa9"))
    'bell \x07, broken \xff, fine é'
    """
    if isinstance(text, bytes):
        text = text[:240].decode(errors="backslashreplace")  # a character has at most 4 bytes
    safe = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:60])
    return f"'{''.join(safe)}'"


def _raw(lines: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the lines as one array of bytes, because string arrays may have invalid UTF-8."""
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    return lines.cast(pa.binary())


def _matches(raw: pa.Array, pattern: str) -> NDArray[np.bool_]:
    matches = pc.match_substring_regex(raw, pattern).fill_null(False)
    found: NDArray[np.bool_] = matches.to_numpy(zero_copy_only=False)
    return found


def _decodable(raw: pa.Array) -> NDArray[np.bool_]:
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        return _matches(raw, _UTF8)
    return np.ones(len(raw), np.bool_)


def _every(fields: pa.Array, first: int, step: int) -> pa.Array:
    return fields.take(pa.array(np.arange(first, len(fields), step)))


def _numbers(texts: pa.Array) -> NDArray[np.float64]:
    """Convert texts that match `_NUMBER`; a number that is too large becomes infinite."""
    numbers: NDArray[np.float64] = texts.cast(pa.string()).cast(pa.float64()).to_numpy()
    return numbers


def _parsed(
    times: NDArray[np.float64] | pa.Array,
    keys: pa.Array | pa.ChunkedArray,
    good: NDArray[np.bool_],
    blank: NDArray[np.bool_] | bool = False,
) -> Parsed:
    malformed = np.flatnonzero(~(good | blank))
    first = int(malformed[0]) if malformed.size else None
    messages = pa.table({"time": times, "key": keys})
    return Parsed(messages, malformed.size, first, int(np.sum(blank)))
