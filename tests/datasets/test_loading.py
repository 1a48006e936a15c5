import gzip
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.datasets import loading
from steelyard.datasets.formats import CsvRows, TimedWords, Wikibench
from steelyard.datasets.loading import Loaded, MalformedInput, load
from tests.datasets.test_formats import LINES, messages_of

HEADER = b"place,user,when"
COLUMNS = {"key": "user", "time": "when"}
CASES = {
    "wikibench": (Wikibench(), {}),
    "words": (TimedWords(), {}),
    "csv": (CsvRows(("place", "user", "when"), **COLUMNS), COLUMNS),
}
CONTENTS = (
    st.tuples(
        st.lists(LINES, max_size=20).map(b"\n".join),
        st.sampled_from([b"", b"\n", b"\r\n", b"\n\n"]),
    )
    .map(b"".join)
    .filter(lambda content: not content.startswith(b"\x1f\x8b\x08"))  # that would be gzip
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder whose files each example overwrites."""
    return tmp_path_factory.mktemp("streams")


def lines_of(content):
    """Split at newlines; a newline at the end starts no line."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return lines if lines[-1] else lines[:-1]


def file_of(folder, name, content):
    """Write a file with this content; a csv file also gets a header."""
    path = folder / name
    path.write_bytes(HEADER + b"\n" + content if name == "csv" else content)
    return path


@pytest.mark.parametrize("name", CASES)
@given(content=CONTENTS)
def test_a_file_gives_the_messages_of_its_lines(folder, name, content):
    """Any bytes can be loaded; a line has messages, is malformed, or (in csv) is empty."""
    parser, columns = CASES[name]
    lines = lines_of(content) if name != "csv" else lines_of(b"\n" + content)[1:]
    parsed = parser.parse(pa.array(lines, pa.binary()))
    loaded = load(file_of(folder, name, content), name, **columns, on_malformed="skip")
    assert Loaded(parsed.messages, parsed.malformed, len(lines) - parsed.blank) == loaded
    if name != "words":
        assert loaded.messages.num_rows + loaded.malformed == loaded.lines


@pytest.mark.parametrize("name", CASES)
@given(content=CONTENTS, block=st.integers(1, 80))
def test_the_size_of_blocks_does_not_change_the_messages(folder, name, content, block):
    """A line may continue in the next block, or be longer than one block."""
    path = file_of(folder, name, content)
    whole = load(path, name, **CASES[name][1], on_malformed="skip")
    with patch.object(loading, "BLOCK_BYTES", block):
        assert whole == load(path, name, **CASES[name][1], on_malformed="skip")


@pytest.mark.parametrize("name", CASES)
@given(content=CONTENTS, block=st.integers(1, 80), cut=st.integers(0, 80))
def test_a_gzip_file_gives_the_messages_of_the_plain_file(folder, name, content, block, cut):
    """The content identifies gzip, with one or several compressed parts."""
    path = file_of(folder, name, content)
    plain = load(path, name, **CASES[name][1], on_malformed="skip")
    content = path.read_bytes()
    path.write_bytes(gzip.compress(content[:cut]) + gzip.compress(content[cut:]))
    with patch.object(loading, "BLOCK_BYTES", block):
        assert plain == load(path, name, **CASES[name][1], on_malformed="skip")


@pytest.mark.parametrize("name", CASES)
@given(content=CONTENTS, block=st.integers(1, 80))
def test_stop_names_the_first_malformed_line(folder, name, content, block):
    """A file without malformed lines is loaded; else the error gives the first line's number."""
    parser, columns = CASES[name]
    path = file_of(folder, name, content)
    first = parser.parse(pa.array(lines_of(content), pa.binary())).first_malformed
    if name == "csv":
        first = parser.parse(pa.array(lines_of(b"\n" + content), pa.binary())).first_malformed
    with patch.object(loading, "BLOCK_BYTES", block):
        if first is None:
            skipping = load(path, name, **columns, on_malformed="skip")
            assert skipping == load(path, name, **columns)
        else:
            number = first + 1
            with pytest.raises(MalformedInput, match=rf"{name}, line {number}, is malformed"):
                load(path, name, **columns)


def test_the_error_message_about_a_malformed_line(tmp_path):
    """It gives the place, the text, the valid form and the remedy."""
    path = tmp_path / "trace"
    path.write_bytes(b"1 2 http://a.org -\n\x1b[31mred " + b"x" * 100)
    with pytest.raises(MalformedInput) as caught:
        load(path, "wikibench")
    assert str(caught.value) == (
        f"{path}, line 2, is malformed: '\\x1b[31mred {'x' * 51}' is not "
        "`counter seconds url flag`; "
        'on_malformed="skip" skips and counts malformed input'
    )


def test_files_below_a_folder_are_loaded_in_the_order_of_their_names(tmp_path):
    """Hidden files are ignored."""
    for name, content in {
        "b.txt": b"2\tb",
        "a.txt.gz": gzip.compress(b"1\ta\n"),
        "c/d.txt": b"\xef\xbb\xbf3\tc d\n",
        "e.txt": b"",
        "_SUCCESS": b"ignored",
        ".hidden/f.txt": b"ignored",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    loaded = load(str(tmp_path), "words")
    assert messages_of(loaded.messages) == [(1, "a"), (2, "b"), (3, "c"), (3, "d")]
    assert (loaded.malformed, loaded.lines) == (0, 3)


def test_a_csv_file_without_times_is_loaded(tmp_path):
    """Keys are text, empty keys are null, all rows are kept, and all times are null."""
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfuser,n\r\n007,1\r\n,2\r\n\r\n7,3\r\n")
    (tmp_path / "b.csv").write_bytes(b"user,n\nann,4")
    (tmp_path / "c.csv").write_bytes(b"")
    loaded = load(tmp_path, "csv", key="user")
    assert messages_of(loaded.messages) == [(None, k) for k in ("007", None, "7", "ann")]
    assert (loaded.malformed, loaded.lines) == (0, 4)
    assert loaded.messages.schema.types == [pa.float64(), pa.string()]


WHEN = datetime(2007, 9, 18, 20, 10, 43, 326000, UTC)


@pytest.mark.parametrize(
    "times",
    [
        pa.array([WHEN, None, WHEN - timedelta(days=99999)], pa.timestamp("ns")),
        pa.array([WHEN, None, WHEN - timedelta(days=99999)], pa.timestamp("ms", "Asia/Tokyo")),
        pa.array([WHEN.timestamp(), float("nan"), float("inf")]),
        pa.array([Decimal("1190146243.326"), Decimal(-1), None], pa.decimal128(20, 3)),
    ],
    ids=lambda times: str(times.type),
)
def test_parquet_times_become_epoch_seconds(tmp_path, times):
    """Rows with a null, negative or infinite time are malformed."""
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"user": [7, 8, 9], "when": times}), path)
    loaded = load(path, "parquet", **COLUMNS, on_malformed="skip")
    assert messages_of(loaded.messages) == [(1190146243.326, 7)]
    assert (loaded.malformed, loaded.lines) == (2, 3)
    with pytest.raises(MalformedInput, match=r"table.parquet, row 2, is malformed: '.*' is not"):
        load(path, "parquet", **COLUMNS)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1, None, 1], pa.int16()),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([b"\xff", None, b""]),
        pa.array([{"a": 1}, None, {"a": 2}]),
        pa.array([WHEN, None, WHEN], pa.timestamp("us")),
    ],
    ids=lambda keys: str(keys.type),
)
def test_parquet_keys_keep_their_type(tmp_path, keys):
    """Keys keep their type and their nulls across files and row groups."""
    for name in ("a", "b"):
        pq.write_table(pa.table({"n": [1, 2, 3], "user": keys}), tmp_path / name, row_group_size=2)
    loaded = load(tmp_path, "parquet", key="user")
    assert loaded.messages["key"].type == keys.type
    assert messages_of(loaded.messages) == 2 * [(None, key) for key in keys.to_pylist()]
    assert (loaded.malformed, loaded.lines) == (0, 6)
    times = load(tmp_path, "parquet", key="n", time="n").messages
    assert messages_of(times) == 2 * [(1, 1), (2, 2), (3, 3)]


def test_bad_settings_are_refused(tmp_path):
    """The error is raised before any message is read."""
    csv = tmp_path / "table.csv"
    csv.write_text("user,when\nann,1\n")
    parquet = tmp_path / "table.parquet"
    pq.write_table(pa.table({"user": ["ann"], "when": ["today"]}), parquet)
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing.csv").write_text("")
    for call, sentence in [
        (("nowhere", "words", {}), "there is no file or folder 'nowhere'"),
        ((tmp_path / "empty", "words", {}), "empty' holds no files"),
        ((csv, "xml", {}), "no format is named 'xml'"),
        ((csv, "csv", {}), "the format csv needs key=, the name of the key column"),
        ((csv, "words", {"key": "user"}), "the format words has no columns: do not pass key="),
        ((csv, "wikibench", {"time": "when"}), "the format wikibench has no columns: do not pass"),
        ((csv, "csv", {"key": "user", "on_malformed": "warn"}), "must be 'stop' or 'skip', got"),
        ((csv, "csv", {"key": "x"}), "table.csv: there is no column 'x'; the columns are: user, w"),
        ((tmp_path / "nothing.csv", "csv", {"key": "x"}), "nothing.csv has no header line"),
        ((csv, "parquet", {"key": "x"}), "table.csv: .*magic bytes"),
        ((parquet, "parquet", {"key": "user", "time": "x"}), "table.parquet: there is no column"),
        ((parquet, "parquet", COLUMNS), "'when' must hold numbers or timestamps, got string"),
    ]:
        path, name, settings = call
        with pytest.raises((ValueError, FileNotFoundError), match=sentence):
            load(path, name, **settings)


def test_files_with_different_headers_or_key_types_are_refused(tmp_path):
    """The error is raised before any message is read."""
    (tmp_path / "a.csv").write_text("user,when\nann,1\n")
    (tmp_path / "b.csv").write_text("when,user\n1,ann\n")
    with pytest.raises(ValueError, match=r"b.csv has another header than .*a.csv"):
        load(tmp_path, "csv", key="user")
    (tmp_path / "tables").mkdir()
    pq.write_table(pa.table({"user": ["ann"]}), tmp_path / "tables" / "a")
    pq.write_table(pa.table({"user": [1]}), tmp_path / "tables" / "b")
    with pytest.raises(ValueError, match=r"in all files, got string in .*a, int64 in .*b"):
        load(tmp_path / "tables", "parquet", key="user")


def test_a_damaged_file_and_a_very_long_line_are_refused(tmp_path):
    """The error message names the file."""
    path = tmp_path / "trace.gz"
    path.write_bytes(gzip.compress(b"1\ta\n" * 100)[:-9])
    with pytest.raises(OSError, match=re.escape(f"{path} cannot be read completely: ")):
        load(path, "words")
    path.write_bytes(b"1\t" + b"a" * 100)
    with (
        patch.object(loading, "BLOCK_BYTES", 10),
        patch.object(loading, "LONGEST_LINE", 50),
        pytest.raises(ValueError, match=r"trace.gz has a line of more than 50 bytes"),
    ):
        load(path, "words")
