import gzip
import random
import threading
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException

from steelyard.datasets import loading as local
from steelyard.datasets.formats import CsvRows
from steelyard.spark import message_files
from steelyard.spark.message_files import LoadReport, load
from steelyard.spark.versions.arrow import to_arrow

COLUMNS = {"key": "user", "time": "when"}
GOOD = {
    "wikibench": [b"7 1190146243.326 http://a.org/%d -", b"8 1190146244 http://a.org/%d save\r"],
    "words": [b"1190146243.5\tto  be %d", b"1190146244\tor %d \r"],
    "csv": [b'"Rome, Italy",ann%d,5.5', b',,%d\r\n\r\n"",caf\xc3\xa9,6'],
}
BAD = [b"what", b" ", b"8 soon http://a.org/ -", b"soon\tto be", b"Oslo,\xff,7", b'x,"y,8', b"1\r2"]


def part_of(name, seed, lines=80):
    """Return the content of a file: about every tenth line is malformed."""
    draw = random.Random(seed)  # noqa: S311
    chosen = [
        draw.choice(BAD) if draw.random() < 0.1 else draw.choice(GOOD[name]) % draw.randrange(50)
        for _ in range(lines)
    ]
    return b"\n".join([b"place,user,when", *chosen] if name == "csv" else chosen)


def sorted_messages(table):
    """Return the messages of a table, sorted."""
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize("name", GOOD)
def test_spark_loads_the_messages_of_the_local_loader(spark, tmp_path, name):
    """Plain and gzip files give the same messages and counts for any split size."""
    (tmp_path / "below").mkdir()
    (tmp_path / "a").write_bytes(part_of(name, 1))
    (tmp_path / "b.gz").write_bytes(gzip.compress(part_of(name, 2)))
    (tmp_path / "below" / "c").write_bytes(b"\xef\xbb\xbf" + part_of(name, 3) + b"\n")
    (tmp_path / "below" / "_SUCCESS").write_bytes(b"what")
    (tmp_path / "d").write_bytes(b"")
    columns = COLUMNS if name == "csv" else {}
    expected = local.load(tmp_path, name, **columns, on_malformed="skip")
    assert expected.malformed > 10
    for split_size in ("1500", "128m"):
        spark.conf.set("spark.sql.files.maxPartitionBytes", split_size)
        spark.conf.set("spark.sql.files.openCostInBytes", "10")
        try:
            loaded = load(spark, tmp_path, name, **columns, on_malformed="skip")
            table = to_arrow(loaded.frame)
        finally:
            spark.conf.unset("spark.sql.files.maxPartitionBytes")
            spark.conf.unset("spark.sql.files.openCostInBytes")
        assert sorted_messages(expected.messages) == sorted_messages(table)
        assert LoadReport(expected.lines, expected.malformed) == loaded.report()


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_times_of_tables_equal_those_of_the_local_loader(spark, tmp_path, zone):
    """The seconds of Parquet timestamps do not depend on the time zone of the session."""
    when = datetime(2007, 9, 18, 20, 10, 43, 326001, UTC)
    times = pa.array([when, when.replace(year=2040), None, when.replace(year=1960)])
    table = pa.table({"user": [7, None, 8, 9], "when": times.cast(pa.timestamp("us", zone))})
    pq.write_table(table, tmp_path / "table.parquet")
    expected = local.load(tmp_path, "parquet", **COLUMNS, on_malformed="skip")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        loaded = load(spark, tmp_path, "parquet", **COLUMNS, on_malformed="skip")
        assert expected.messages.to_pylist() == to_arrow(loaded.frame).to_pylist()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert loaded.report() == LoadReport(lines=4, malformed=2)


def test_tables_without_a_time_column_have_null_times(spark, tmp_path):
    """Keys keep their type and their nulls; column names may have any characters."""
    pq.write_table(pa.table({"a.`b": [1.5, None]}), tmp_path / "table.parquet")
    loaded = load(spark, tmp_path, "parquet", key="a.`b")
    assert loaded.frame.dtypes == [("time", "double"), ("key", "double")]
    assert [tuple(row) for row in loaded.frame.collect()] == [(None, 1.5), (None, None)]
    assert loaded.report() == LoadReport(lines=2, malformed=0)


def test_with_stop_a_malformed_line_fails_the_action(spark, tmp_path):
    """A malformed line or row fails even an action that needs none of its columns."""
    for name in GOOD:
        (tmp_path / name).write_bytes(part_of(name, 1))
        frame = load(spark, tmp_path / name, name, **(COLUMNS if name == "csv" else {})).frame
        sentence = rf"a line of file:\S*/{name} is malformed: '.*' is not .*; on_malformed=\"skip\""
        with pytest.raises(Exception, match=sentence):
            frame.count()
    pq.write_table(pa.table({"user": [1, 2], "when": [5.0, -1.0]}), tmp_path / "table.parquet")
    frame = load(spark, tmp_path / "table.parquet", "parquet", **COLUMNS).frame
    with pytest.raises(Exception, match=r"a row of \S*table.parquet is malformed: '-1.0' is not a"):
        frame.count()


@given(
    files=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5)), max_size=6),
    cuts=st.lists(st.integers(0, 30)),
)
def test_headers_are_found_for_any_split_into_batches(files, cuts):
    """Only the first line of each file is a header."""
    lines = [
        {"line": b"user", "file": "f", "beginning": number if piece == 1 else 0}
        for number, (piece, length) in enumerate(files, start=1)
        for _ in range(length)
    ]
    schema = pa.schema({"line": pa.binary(), "file": pa.string(), "beginning": pa.int64()})
    whole = pa.RecordBatch.from_pylist(lines, schema)
    edges = sorted({0, len(lines), *(cut for cut in cuts if cut < len(lines))})
    batches = [whole.slice(a, b - a) for a, b in pairwise(edges)]
    parse = message_files._parser(CsvRows(("user",), "user"), stop=True, header=b"user")
    tallies = [row["lines"] for batch in parse(batches) for row in batch.to_pylist()]
    headers = sum(piece == 1 and length > 0 for piece, length in files)
    assert tallies.count(None) == sum(filter(None, tallies)) == len(lines) - headers


def test_csv_files_with_different_headers_fail(spark, tmp_path):
    """Columns in another order are not confused."""
    (tmp_path / "a.csv").write_text("user,when\nann,1\nbob,2\n")
    (tmp_path / "b.csv").write_text("when,user\n1,ann\n")
    frame = load(spark, tmp_path, "csv", key="user").frame
    with pytest.raises(Exception, match=r"b.csv has another header than the first file"):
        frame.count()


def test_bad_settings_get_one_sentence(spark, tmp_path):
    """The error comes before an action."""
    table = tmp_path / "table"
    pq.write_table(pa.table({"user": ["ann"], "when": ["today"]}), table)
    (tmp_path / "a.csv").write_text("user,when\n")
    (tmp_path / "nothing.csv").write_text("")
    (tmp_path / "empty").mkdir()
    for path, name, settings, sentence in [
        (table, "xml", {}, "no format is named 'xml'"),
        (table, "parquet", {}, "the format parquet needs key="),
        (table, "parquet", {"key": "x"}, "table: there is no column 'x'; the columns are: user, w"),
        (table, "parquet", COLUMNS, "'when' must hold numbers or timestamps, got string"),
        (tmp_path / "a.csv", "csv", {"key": "x"}, "a.csv: there is no column 'x'"),
        (tmp_path / "nothing.csv", "csv", {"key": "x"}, "nothing.csv has no header line"),
        (tmp_path / "empty", "words", {}, "empty' holds no files"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=sentence):
            load(spark, path, name, **settings)
    with pytest.raises(AnalysisException, match="PATH_NOT_FOUND"):
        load(spark, tmp_path / "nowhere", "words")


def test_no_report_before_an_action(spark, tmp_path):
    """A report before the first action is an error; after the action it works."""
    (tmp_path / "a.txt").write_text("1\tto be\n")
    loaded = load(spark, tmp_path / "a.txt", "words")
    threads = threading.active_count()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="run an action on the frame first"):
            loaded.report(patience=0.1)
    assert threading.active_count() <= threads + 1, "at most one thread waits"
    assert loaded.frame.count() == 2
    assert loaded.report() == LoadReport(lines=1, malformed=0)
