"""The doctor counts exactly on Spark, in one pass, and the command line shows the counts."""

import json
import re
from collections import Counter
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from steelyard.spark.doctor_input import Data, kind_of
from steelyard.spark.examining import key_counts
from steelyard.spark.versions.interfaces import kafka_connector

ODD = ["[bold]red[/bold]", "<script>alert(1)</script>", "two\nlines", "$x$", "日本", "", None]


@pytest.fixture(scope="module")
def rows():
    """Return rows with skewed keys, among them null and odd ones, a value and a time."""
    rng = np.random.default_rng(0)
    numbers = np.minimum(rng.zipf(1.5, 5000), 400)
    keys = [ODD[n - 1] if n <= len(ODD) else f"key {n}" for n in numbers.tolist()]
    return [(key, i, 1_700_000_000 + i) for i, key in enumerate(keys)]


@pytest.fixture(scope="module")
def frame(spark, rows):
    """Return the rows as a frame with three partitions."""
    return spark.createDataFrame(rows, "page string, visit long, at long").repartition(3)


@pytest.fixture(scope="module")
def parquet(frame, tmp_path_factory):
    """Return a folder of Parquet files with the rows."""
    path = tmp_path_factory.mktemp("doctor") / "visits.parquet"
    frame.write.parquet(str(path))
    return path


def doctor(*arguments):
    return CliRunner().invoke(
        app, ["doctor", *map(str, arguments)], env={"COLUMNS": "80", "NO_COLOR": "1"}
    )


def test_counts_equal_those_of_a_python_counter(frame, rows):
    """Messages, keys, hot keys and the distribution of counts are exact, also for nulls."""
    plain = Counter(key for key, _, _ in rows)
    counts = key_counts(frame, ("page",), workers=5)
    assert (len(rows), len(plain)) == (counts.messages, counts.keys)
    by_count = Counter(plain.values())
    assert by_count == dict(zip(counts.values.tolist(), counts.keys_with.tolist(), strict=True))
    assert [n for _, n in plain.most_common(20)] == [top.messages for top in counts.top]
    assert all(plain[top.name[0]] == top.messages for top in counts.top)
    hashes = sy.hash_keys(pa.array([key for key, _, _ in rows], pa.string()))
    assert np.bincount(hashes % 8192, minlength=8192).tolist() == counts.by_bucket.tolist()
    assert len(plain) == counts.keys_by_bucket.sum()


def test_the_cost_of_key_grouping_is_that_of_sparks_repartition(frame):
    """The largest share equals the largest partition of Spark's repartition."""
    found = sy.doctor.examine(frame, "page", 5)
    real = frame.repartition(5, "page").groupBy(F.spark_partition_id()).count().collect()
    assert found.costs[0].largest_share == max(size for _, size in real) / found.messages
    planned = sy.plan(frame, "page", workers=5)
    assert found.costs[-1].largest_share == pytest.approx(planned.shares.max())


@pytest.mark.classic_only(reason="Python workers there write elsewhere")
def test_the_rows_are_read_once(spark, tmp_path):
    """One pass over the rows gives all counts."""
    folder = str(tmp_path)

    def mark(batches):
        import tempfile

        tempfile.mkstemp(dir=folder)
        yield from batches

    read = spark.range(0, 1000, 1, 2).mapInArrow(mark, "id long")
    assert 1000 == key_counts(read.selectExpr("id % 7 AS key"), ("key",), workers=3).messages
    assert 2 == len(list(tmp_path.iterdir()))


def test_several_and_nested_columns_are_keys(spark):
    """Keys may have other types than text; the advice turns a field into a column."""
    rows = spark.range(1000).selectExpr(
        "named_struct('id', id % 10, 'name', if(id < 500, 'a', null)) AS user",
        "date'2020-01-01' AS `a.b`",
    )
    found = sy.doctor.examine(rows, ["user.id", "a.b", "user.name"], 2)
    assert (1000, 20) == (found.messages, found.keys)
    assert {2} == {hot.name.count("2020-01-01") + len(hot.name) - 2 for hot in found.top}
    assert {"a", None} == {hot.name[2] for hot in found.top}
    assert 'df.withColumn("user_id", F.col("user.id"))' in found.advice.code


def test_the_command_takes_a_key_in_sql(parquet, frame):
    """Its numbers are those of a column of the same values, and the advice repeats the SQL."""
    done = doctor(parquet, "--key", "upper(PAGE)", "--workers", 4, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    made = frame.withColumn("upper(page)", F.upper("page"))
    expected = json.loads(sy.doctor.examine(made, "upper(page)", 4).to_json())
    assert ["upper(page)"] == found["key"]
    assert expected["top"] == found["top"]
    assert 'df.withColumn("upper_page", F.expr("upper(page)"))' in found["recommendation"]["code"]


def test_null_keys_are_reported(spark):
    """Keys with one null column are reported, too."""
    rows = spark.range(1000).selectExpr(
        "if(id < 700, null, id) AS page", "'de' AS region", "string(null) AS nothing"
    )
    assert sy.doctor.examine(rows, "page", 4).verdict.endswith("It is null: filter the nulls, or "
                                                               "check the column.")  # fmt: skip
    both = sy.doctor.examine(rows, ["page", "region"], 4, work="join")
    assert "It has a null" in both.verdict
    long = sy.doctor.Estimates(row_time=10_000)
    both = sy.doctor.examine(rows, ["page", "region"], 4, work="join", estimates=long)
    assert 'df.dropna(subset=["page", "region"]).join(other, ["page", "region"])' == (
        both.advice.code
    )
    joined = rows.dropna(subset=["page", "region"])
    assert 300 == joined.count()
    assert "All keys have a null: check region, nothing." == (
        sy.doctor.examine(rows, ["region", "nothing"], 4).verdict
    )


@pytest.mark.parametrize("kind", ["long", "double", "timestamp", "timestamp_ntz", "date", "string"])
def test_times_of_any_kind_are_understood(spark, kind):
    """Times are numbers, timestamps with or without a zone, dates, or text of any of these."""
    day = "timestamp_seconds(1700000000 + id * 86400)"
    at = {
        "long": "1700000000 + id * 86400",
        "double": "double(1700000000 + id * 86400)",
        "timestamp_ntz": f"to_timestamp_ntz(string({day}))",
        "date": f"date({day})",
        "string": f"if(id = 7, 'soon', string({day}))",
    }.get(kind, day)
    rows = spark.range(800).selectExpr("if(id < 400, 'cat', 'dog') AS pet", f"{at} AS at")
    seen = sy.doctor.examine(rows, "pet", 4, time="at").over_time
    assert {("cat",), ("dog",)} == set(seen.come_and_go)
    assert (1 if kind == "string" else 0) == seen.untimed
    first = datetime.fromtimestamp(seen.periods[0].first)
    assert 2023 == first.year


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"key": "pge"}, "key: there is no column 'pge'; the columns are page, visit, at"),
        ({"key": "page.x"}, "key: there is no column 'page.x'; the columns are page"),
        ({"key": []}, "key needs at least one column, got none"),
        ({"key": ["page", "page"]}, "key: a column is named twice in page, page"),
        ({"time": "when"}, "time: there is no column 'when'; the columns are page, visit, at"),
        ({"workers": 0}, "workers must be a whole number, from 1 to 8,192, got 0"),
        ({"capacities": [1, -1]}, "capacities must be positive numbers, got -1.0 at 1"),
        ({"capacities": [1, 1, 1]}, "capacities must be one number for each of 2 workers, got 3"),
        ({"work": "play"}, "work must be one of python, aggregate, join, write, stream"),
    ],
)
def test_bad_arguments_get_one_sentence(frame, arguments, sentence):
    """The error comes before the rows are counted."""
    with pytest.raises(ValueError, match=sentence):
        sy.doctor.examine(frame, **{"key": "page", "workers": 2, **arguments})


def test_frames_that_cannot_be_examined_are_refused(spark, frame):
    """An empty frame, a stream, keys that cannot be hashed and invalid times are refused."""
    with pytest.raises(ValueError, match="nothing to examine: the data has no rows"):
        sy.doctor.examine(frame.where("false"), "page", 2)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match="frame is a stream, which has no end"):
        sy.doctor.examine(stream, "value", 2)
    with pytest.raises(ValueError, match=r"is map<.*>, which Spark cannot hash"):
        sy.doctor.examine(spark.sql("SELECT map('a', 1) AS m"), "m", 2)
    with pytest.raises(ValueError, match="time: column 'b' must hold times, dates or numbers"):
        sy.doctor.examine(spark.sql("SELECT 1 AS a, true AS b"), "a", 2, time="b")


def test_the_command_shows_the_whole_report_on_a_terminal(parquet, rows):
    """Questions, answers and odd keys are plain text, at most 80 columns wide."""
    shown = doctor(parquet, "--key", "page", "--workers", "8", "--time", "at")
    assert shown.exit_code == 0, shown.output
    parts = ("visits.parquet by page", "5,000 messages", "Do the hot keys change?", "on 8 workers?")
    for words in (*parts, "[bold]red[/bold]", r"two\nlines", "(null)", "sy.group_by(df"):
        assert words in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "table"])
def test_with_json_the_command_prints_only_json(spark, frame, parquet, rows, tmp_path, kind):
    """The numbers are exact for every kind of source."""
    plain = Counter(key for key, _, _ in rows)
    source = parquet
    if kind in ("csv", "json"):
        source = tmp_path / f"visits.{kind}"
        getattr(frame.where("page <> ''").write.option("header", True), kind)(str(source))
        plain = Counter({key: n for key, n in plain.items() if key})
    if kind == "table":
        frame.createOrReplaceTempView("visits_table")
        source = "visits_table"
    more = {"table": ["--source", "table"], "csv": ["--multiline"]}.get(kind, [])
    arguments = ["--key", "page", "--json", *more]
    shown = doctor(source, *arguments)
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    assert (sum(plain.values()), len(plain)) == (found["messages"], found["keys"])
    assert max(plain.values()) / sum(plain.values()) == found["p1"]
    assert {hot["key"]: hot["messages"] for hot in found["top"]}.items() <= plain.items()


def test_the_page_is_one_file_in_which_keys_are_text(parquet, tmp_path):
    """The page loads nothing, runs no scripts of keys, and has all figures."""
    page = tmp_path / "visits.html"
    shown = doctor(parquet, "--key", "page", "--time", "at", "--capacities",
                   "2,1,1", "--workers", "3", "--html", page)  # fmt: skip
    assert shown.exit_code == 0, shown.output
    html = page.read_text("utf-8")
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "[bold]red[/bold]" in html
    assert all(target.startswith("data:image/png;base64,iVBOR")
               for target in re.findall(r'(?:src|href)="([^"]*)', html))  # fmt: skip
    assert 3 == html.count("<img")
    assert "2.0, 1.0, 1.0" in html


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.parquet", "--key", "k"], "there is no file or folder 'nowhere.parquet'"),
        (["README.md"], "key must be the column to group by"),
        (["README.md", "--key", "k", "--source", "xml"], "source must be one of parquet, csv"),
        (
            ["README.md", "--key", "k", "--capacities", "1,x"],
            "capacities must be numbers separated",
        ),
        (["README.md", "--key", "k", "--workers", "2", "--capacities", "1,0"], "must be positive"),
        (["README.md", "--key", "k", "--work", "play"], "work must be one of python"),
        (
            ["README.md", "--key", "k", "--html", "no/x.html"],
            "the folder of 'no/x.html' does not exist",
        ),
        (["README.md", "--key", "k"], "'README.md' cannot be read"),
        (["README.md", "--key", "k"], "format parquet is a guess: pass the format with --source"),
        ([], "data must be a file, a folder or a table to examine, as in: steelyard doctor"),
        (["--key", "k"], "data must be a file, a folder or a table to examine"),
        (["a.csv", "b.csv", "--key", "k"], "name their folder, or a pattern in quotes"),
        (["no/*.csv", "--key", "k"], "Path does not exist"),
        (["s3a://x/y", "--key", "k"], "S3AFileSystem not found; Spark has no connector for this"),
        (["--source", "csv", "--key", "k"], "source csv needs the file"),
        (["--source", "table", "--key", "k"], "source table needs the name"),
        (["no_such_table", "--source", "table", "--key", "k"], "TABLE_OR_VIEW_NOT_FOUND"),
        (["--source", "kafka", "--topic", "t"], "source kafka needs --servers and --topic"),
        (
            ["--servers", "s:1", "--topic", "t"],
            f"with --conf spark.jars.packages={kafka_connector()}",
        ),
        (["--topic", "t", "--servers", "s", "--messages", "0"], "messages must be a whole number"),
    ],
)
def test_bad_commands_get_one_sentence(spark, arguments, sentence, monkeypatch):
    """The exit code is 2, and there is no traceback."""
    monkeypatch.setenv("COLUMNS", "300")
    result = CliRunner().invoke(app, ["doctor", *arguments])
    assert result.exit_code == 2, result.output
    assert sentence in " ".join(result.output.replace("│", " ").split())


def test_a_folder_without_data_is_refused(tmp_path):
    """The error comes before Spark starts; files that Spark skips do not count as data."""
    (tmp_path / "_SUCCESS").touch()
    result = doctor(tmp_path, "--key", "page")
    assert result.exit_code == 2, result.output
    assert "there are no files in" in result.output


def test_a_pattern_names_several_files(spark, tmp_path):
    """Spark reads all files that match the pattern."""
    for name in ("a.csv", "b.csv", "c.txt"):
        (tmp_path / name).write_text("page\nhome\nnews\n", "utf-8")
    result = doctor(tmp_path / "*.csv", "--key", "page", "--json")
    assert result.exit_code == 0, result.output
    assert 4 == json.loads(result.stdout)["messages"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [("json", '{"page": "home"}\nno json\n'), ("csv", 'page,visit\nhome,1\n"two\nlines",2\n')],
)
def test_malformed_lines_are_not_counted_as_null_keys(spark, tmp_path, kind, text):
    """An invalid line of JSON or CSV stops the doctor with the message of Spark."""
    path = tmp_path / f"visits.{kind}"
    path.write_text(text, "utf-8")
    result = doctor(path, "--key", "page")
    assert result.exit_code == 2, result.output
    assert "alformed" in result.output


def test_the_format_follows_from_the_file_name(tmp_path):
    """This holds for compressed files and for files in a folder, too."""
    (tmp_path / "part-0.jsonl").write_text("{}\n", "utf-8")
    assert ("json", "csv", "json") == (
        kind_of(str(tmp_path)), kind_of("x.TSV.gz"), kind_of("visits.ndjson/"))  # fmt: skip
    assert "topic clicks" == Data("kafka", servers="s", topic="clicks").name
