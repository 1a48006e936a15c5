"""Keys of any bytes are shown as plain text: in the report, in JSON and on the page."""

import json

import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from steelyard.printable import printable
from steelyard.report.doctor import doctor_page
from tests.hostile import HOSTILE, HOSTILE_BYTES, obeyed_by_a_terminal

SHOWN = r"\xff\x9b31m\x00\xe2\x82[bold]"
"""How the bytes before the hostile text are shown."""


@pytest.fixture(scope="module")
def frame(spark):
    """Rows of which half have hostile bytes as key, as binary and as text that is not UTF-8."""
    rows = [(bytearray(HOSTILE_BYTES), i) for i in range(300)]
    rows += [(bytearray(f"key {i}".encode()), i) for i in range(200)] + [(None, 1)]
    keys = spark.createDataFrame(rows, "raw binary, at long")
    return keys.selectExpr(
        "raw", "cast(raw AS string) AS text", "named_struct('k', raw) AS s", "at"
    )


@pytest.mark.parametrize("key", ["raw", "text", "s.k"])
def test_bytes_that_are_not_utf8_are_shown_escaped(frame, key):
    """Text, JSON and page show them, with and without times; valid bytes are shown as text."""
    found = sy.doctor.examine(frame, key, 4, time="at")
    assert (501, 202, 300) == (found.messages, found.keys, found.top[0].messages)
    hottest = found.top[0].name[0]
    assert hottest == r"\xff\x9b31m" + "\x00" + r"\xe2\x82[bold]" + HOSTILE
    assert {None} < {hot.name[0] for hot in found.top} - {hottest}
    assert SHOWN in found.describe()
    assert json.loads(found.to_json())["top"][0]["key"] == hottest
    page = doctor_page(found)
    assert SHOWN in page
    assert "<script>" not in page
    for output in (found.describe(), found.to_json(), page):
        assert [] == obeyed_by_a_terminal(output)


def test_different_bytes_are_different_keys(spark):
    """Hashes and counts are those of the bytes, not of the text that is shown."""
    rows = spark.sql("SELECT unhex(hex(id % 256)) AS raw FROM range(1024)")
    found = sy.doctor.examine(rows, "raw", 4)
    assert (1024, 256) == (found.messages, found.keys)
    assert sy.doctor.examine(rows.selectExpr("string(raw) AS text"), "text", 4).keys == 256


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_with_bytes_that_are_not_utf8_are_examined(frame, tmp_path, kind):
    """Parquet keeps the bytes, and Spark itself replaces them when it reads CSV."""
    path = tmp_path / f"keys.{kind}"
    if kind == "parquet":
        frame.select("raw").write.parquet(str(path))
    else:
        path.write_bytes(b"raw\n" + b"caf\xe9 \x1b[31m\n" * 300 + b"tea\n" * 100)
    for more in ([], ["--json"]):
        run = ["doctor", str(path), "--key", "raw", "--workers", "4", *more]
        shown = CliRunner().invoke(app, run, env={"COLUMNS": "80", "NO_COLOR": "1"})
        assert shown.exit_code == 0, shown.output
        assert [] == obeyed_by_a_terminal(shown.stdout)
        if kind == "parquet" and not more:
            assert printable(SHOWN) in shown.stdout
        if more:
            assert json.loads(shown.stdout)["top"][0]["messages"] == 300


def test_json_that_is_not_utf8_is_refused(spark, tmp_path):
    """For Spark such a line is malformed; the message is one sentence."""
    path = tmp_path / "keys.json"
    path.write_bytes(b'{"raw": "caf\xe9"}\n')
    shown = CliRunner().invoke(app, ["doctor", str(path), "--key", "raw"])
    assert shown.exit_code == 2
    assert "alformed" in shown.output
