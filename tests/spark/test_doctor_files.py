"""Files and topics that the doctor cannot read, in one sentence each."""

import gzip

import pytest
from typer.testing import CliRunner

from steelyard.cli import app


def refused(*arguments):
    """Run the doctor, which refuses its data, and return the sentence."""
    done = CliRunner().invoke(
        app, ["doctor", *map(str, arguments)], env={"COLUMNS": "300", "TERM": "dumb"}
    )
    assert done.exit_code == 2, done.output
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize("row", ["home,2,3", "home"], ids=["too many fields", "too few fields"])
@pytest.mark.parametrize("name", ["visits.csv", "visits.csv.gz"])
def test_a_ragged_csv_file_names_file_and_line(spark, tmp_path, row, name):
    """Spark's own message has no line."""
    open_file = gzip.open if name.endswith("gz") else open
    with open_file(tmp_path / name, "wt", encoding="utf-8") as file:
        file.write(f"page,visit\nhome,1\n{row}\nnews,4\n")
    fields = "3 fields" if "," in row else "1 field"
    sentence = f"{name}, line 3, is malformed: it has {fields}, and the header has 2"
    assert sentence in refused(tmp_path / name, "--key", "page")


def test_a_field_with_line_breaks_is_no_ragged_row(spark, tmp_path):
    """With --multiline the line of a row is its last one."""
    (tmp_path / "visits.csv").write_text('page,visit\n"a\nb",1\nhome,2,3\n', "utf-8")
    shown = refused(tmp_path / "visits.csv", "--key", "page", "--multiline")
    assert "visits.csv, line 4, is malformed: it has 3 fields" in shown


def test_an_empty_csv_file_has_no_columns(spark, tmp_path):
    """The sentence says so, instead of naming no columns."""
    (tmp_path / "empty.csv").touch()
    shown = refused(tmp_path / "empty.csv", "--key", "page")
    assert "has no columns, because it is empty" in shown


@pytest.mark.classic_only(reason="commands find a Spark that runs in their process")
def test_a_missing_connector_to_kafka_is_explained(spark):
    """The sentence says how to give it to Spark, by jars and by a package."""
    shown = refused("--topic", "t", "--servers", "127.0.0.1:1")
    assert "pass its jars with --jars, or its package with --conf spark.jars.packages=" in shown


def test_an_option_of_the_source_reaches_spark(spark, tmp_path):
    """The option may change how Spark reads a file."""
    (tmp_path / "visits.csv").write_text("page,visit\nhome,1\n#news,2\nhome,3\n", "utf-8")
    arguments = ["doctor", str(tmp_path / "visits.csv"), "--key", "page", "--json"]
    done = CliRunner().invoke(app, [*arguments, "--option", "comment=#"])
    assert done.exit_code == 0, done.output
    assert '"messages": 2' in done.stdout
