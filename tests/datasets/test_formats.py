import csv
import io
import math
import re
from itertools import groupby

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steelyard.datasets.formats import FORMATS, CsvRows, TimedWords, Wikibench, in_short, named

NUMBER = re.compile("[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=8)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\v\f\r "), min_size=1, max_size=8
)
TIMES = st.floats(0, allow_infinity=False, allow_nan=False).map(abs)
TIMED_KEYS = st.lists(st.tuples(TIMES, WORDS))
CSV = CsvRows(("place", "user", "when"), key="user", time="when")
PARSERS = [Wikibench(), TimedWords(), CSV, CsvRows(("user",), key="user")]

# Pieces that all formats consist of, and pieces that make a line malformed.
BITS = st.sampled_from(
    b'1|17|2.5|1e9|1e999|-1|nan|inf|.5|1_0|-|save|http://a.org/|\t|\t| | |  |,|,|"|""|\r|\v|\x00'
    b"|caf\xc3\xa9|\xc2\xa0|\xff|\xed\xa0\x80|\xef\xbb\xbf|99999999999".split(b"|")
)
GOOD_LINES = st.sampled_from(
    [
        b"12 1190146243.326 http://a.org/wiki/B -",
        b"13 1190146244 http://a.org/w?c=%20 save\r",
        b"1190146243\tto be or  not ",
        b"5.25\t caf\xc3\xa9\r",
        b"Oslo,ann,5.5",
        b'"Rome, Italy","b ""x"" b",17\r',
        b'"",a"b,4',
        b",,3",
    ]
)
NEARLY_GOOD_LINES = st.sampled_from(
    [
        b"12 1e999 http://a.org/wiki/B -",
        b"13 1190146244 http://a.org/ save\r\r",
        b"14  1190146244 http://a.org/ -",
        b"1e999\tto be",
        b"5\tto\tbe",
        b"5\tto be\r\r",
        b"Oslo,ann,1e999",
        b"Oslo,ann,5,",
        b'Oslo,"ann" ,5',
        b"Oslo,ann,5\r\r",
    ]
)
LINES = st.one_of(
    GOOD_LINES,
    NEARLY_GOOD_LINES,
    st.lists(BITS, max_size=8).map(b"".join),
    st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")),
)


def plain_number(text):
    """Return the number in a text, or None if the text is not a valid time."""
    number = float(text) if NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def plain_wikibench(text):
    """Return the message of a line in a list, or None for a malformed line."""
    if any(c in text for c in "\t\n\v\f\r") or text.count(" ") != 3:
        return None
    counter, seconds, url, flag = text.split(" ")
    counts = counter.isascii() and counter.isdecimal()
    time = plain_number(seconds)
    return [(time, url)] if counts and time is not None and url and flag in ("-", "save") else None


def plain_words(text):
    """Return the messages of a line, or None for a malformed line."""
    if any(c in text for c in "\n\v\f\r") or text.count("\t") != 1:
        return None
    seconds, rest = text.split("\t")
    time = plain_number(seconds)
    words = [word for word in rest.split(" ") if word]
    return [(time, word) for word in words] if words and time is not None else None


def plain_csv(rows, text):
    """Return the message of a row in a list, [] for an empty line, None for a malformed line."""
    if not text:
        return []
    if text.endswith("\r"):
        return None
    try:
        (cells,) = csv.reader([text], strict=True)
    except csv.Error:
        return None
    if len(cells) != len(rows.columns):
        return None
    key = cells[rows.columns.index(rows.key)] or None
    if rows.time is None:
        return [(None, key)]
    time = plain_number(cells[rows.columns.index(rows.time)])
    return None if time is None else [(time, key)]


def plain_parse(parser, lines):
    """Return all messages, the indices of malformed lines and the number of blank lines."""
    messages, malformed, blank = [], [], 0
    for index, line in enumerate(lines):
        try:
            text = line.decode().removesuffix("\r")
        except UnicodeDecodeError:
            found = None
        else:
            found = {
                "wikibench": plain_wikibench,
                "words": plain_words,
                "csv": lambda text: plain_csv(parser, text),
            }[parser.name](text)
        if found is None:
            malformed.append(index)
        else:
            blank += not found
            messages += found
    return messages, malformed, blank


def messages_of(table):
    """Return the rows of a table of messages as tuples."""
    return list(zip(table["time"].to_pylist(), table["key"].to_pylist(), strict=True))


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
@given(lines=st.lists(LINES, max_size=20))
@example(lines=[b"\xef\xbb\xbfOslo,ann,5.5"])
def test_a_parser_agrees_with_its_plain_twin(parser, lines):
    """The parser and a plain Python loop agree on every line, valid or malformed."""
    messages, malformed, blank = plain_parse(parser, lines)
    parsed = parser.parse(pa.array(lines, pa.binary()))
    assert messages == messages_of(parsed.messages)
    assert parsed.messages.schema.types == [pa.float64(), pa.string()]
    parsed.messages.validate(full=True)
    assert len(malformed) == parsed.malformed
    assert (malformed[0] if malformed else None) == parsed.first_malformed
    assert blank == parsed.blank


@given(TIMED_KEYS)
def test_written_requests_are_read_back(messages):
    """Messages that are written as Wikibench lines are parsed into the same messages."""
    lines = [
        f"{counter} {time!r} {key} {'-' if counter % 2 else 'save'}"
        for counter, (time, key) in enumerate(messages)
    ]
    parsed = Wikibench().parse(pa.array(lines, pa.string()))
    assert messages == messages_of(parsed.messages)
    assert parsed.malformed == 0


@given(TIMED_KEYS, st.sampled_from([" ", "   "]))
def test_written_words_are_read_back(messages, space):
    """Messages that are written as lines of words are parsed into the same messages."""
    lines = [
        f"{time!r}\t{space.join(key for _, key in line)}"
        for time, line in groupby(messages, key=lambda message: message[0])
    ]
    parsed = TimedWords().parse(pa.array(lines, pa.string()))
    assert messages == messages_of(parsed.messages)
    assert parsed.malformed == 0


@given(st.lists(st.tuples(TIMES, TEXT | st.none(), TEXT)))
def test_written_csv_rows_are_read_back(rows):
    """Rows that Python's csv module writes are parsed; an empty cell is null."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([place, key, repr(time)] for time, key, place in rows)
    parsed = CSV.parse(pa.array(text.getvalue().split("\n")[:-1], pa.string()))
    assert [(time, key) for time, key, _ in rows] == messages_of(parsed.messages)
    assert parsed.malformed == 0


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
@given(lines=st.lists(LINES | st.none(), min_size=1, max_size=20), cut=st.integers(0, 20))
def test_every_arrow_type_of_lines_is_parsed(parser, lines, cut):
    """Strings with invalid UTF-8, large offsets, slices and chunks give the same messages."""
    whole = pa.array(lines, pa.binary())
    expected = parser.parse(whole)
    for same in (
        whole.view(pa.string()),
        whole.cast(pa.large_binary()),
        pa.chunked_array([whole[:cut], whole[cut:]]),
        pa.concat_arrays([whole, whole])[len(lines) :],
    ):
        assert expected == parser.parse(same)
    assert lines.count(None) <= expected.malformed


def test_no_lines_give_an_empty_table():
    """The table has the columns `time` and `key`."""
    for parser in PARSERS:
        for nothing in (pa.array([], pa.string()), pa.chunked_array([], pa.string())):
            parsed = parser.parse(nothing)
            assert parsed.messages.schema.names == ["time", "key"]
            assert (parsed.messages.num_rows, parsed.malformed, parsed.blank) == (0, 0, 0)


def test_rows_with_thousands_of_columns_are_parsed():
    """A row with a missing cell is malformed."""
    columns = tuple(f"c{number}" for number in range(3000))
    rows = CsvRows(columns, key="c2999")
    parsed = rows.parse(pa.array([",".join(columns), ",".join(columns[1:])]))
    assert messages_of(parsed.messages) == [(None, "c2999")]
    assert (parsed.malformed, parsed.first_malformed) == (1, 1)


def test_one_column_may_hold_keys_and_times():
    """The column of both may have an empty name."""
    parsed = CsvRows.below(b",a", key="", time="").parse(pa.array(["1,b", "2,c"]))
    assert messages_of(parsed.messages) == [(1, "1"), (2, "2")]


@pytest.mark.parametrize("header", [b"", b'"user', b"us\xffer", b'"us"er,when'])
def test_an_invalid_header_is_refused(header):
    """The error message shows the line."""
    with pytest.raises(ValueError, match="is not a valid header line"):
        CsvRows.below(header, "user")


def test_a_missing_or_repeated_column_is_refused():
    """The error message lists the columns of the file."""
    assert CsvRows.below(b'"a b",c\r', "a b", "c") == CsvRows(("a b", "c"), "a b", "c")
    with pytest.raises(ValueError, match="there is no column 'd'; the columns are: a, c, c"):
        CsvRows.below(b"a,c,c", "a", "d")
    with pytest.raises(ValueError, match="there are 2 columns 'c'"):
        CsvRows.below(b"a,c,c", "c")


def test_formats_are_found_by_name():
    """An unknown name is refused, and the error message lists the formats."""
    for known in FORMATS:
        assert named(known.name) is known
    with pytest.raises(ValueError, match="no format is named 'xml'; the formats are: wikibench, "):
        named("xml")


@given(st.binary(max_size=300) | st.text(max_size=300))
def test_the_quoted_start_of_a_line_is_short_and_printable(text):
    """This holds for any bytes and any text."""
    shown = in_short(text)
    assert shown.isprintable()
    assert len(shown) <= 2 + 60 * len("\\U0010ffff")
    if isinstance(text, str) and text.isprintable():
        assert shown == f"'{text[:60]}'"
