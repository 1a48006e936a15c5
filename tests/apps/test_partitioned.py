import pytest
from pyspark.sql import functions as F

from steelyard.apps.partitioned import partitioned


def test_files_are_neither_giant_nor_many(spark, tmp_path):
    """All rows are written; a hot day is several files, and every other day is one file."""
    rows = spark.range(20_000).selectExpr("if(id % 2 = 0, 0, id % 60) AS day", "id")
    writer = partitioned(rows, "day", rows_per_file=2000)
    writer.mode("overwrite").parquet(str(tmp_path / "days"))
    written = spark.read.parquet(str(tmp_path / "days"))
    assert written.agg(F.sum("id"), F.count("*")).first() == (sum(range(20_000)), 20_000)
    found = written.groupBy("day", F.input_file_name().alias("file")).count().collect()
    assert max(row["count"] for row in found) < 1.1 * 2000
    assert 5 <= sum(row["day"] == 0 for row in found) <= 7
    assert 30 == len({row["file"] for row in found if row["day"] != 0})


def test_an_empty_frame_is_written_and_bad_arguments_are_refused(spark, tmp_path):
    """An empty frame gives no files of rows; `rows_per_file` must be at least 1."""
    rows = spark.range(0).selectExpr("id AS day", "id")
    partitioned(rows, "day", rows_per_file=10).parquet(str(tmp_path / "days"))
    assert [] == list((tmp_path / "days").glob("day=*"))
    with pytest.raises(ValueError, match="rows_per_file must be a whole number, at least 1, got 0"):
        partitioned(rows, "day", rows_per_file=0)
    with pytest.raises(ValueError, match="key: there is no column 'no'"):
        partitioned(rows, "no", rows_per_file=1)
