"""Every example runs and prints its table."""

import runpy
from pathlib import Path

import pytest

from steelyard.spark.session import STATE_IN_ROCKSDB
from tests.spark.streaming.running import kept

EXAMPLES = Path(__file__).parents[2] / "examples"


def printed(name, capsys, *arguments, **settings):
    """Return the lines of the table that an example prints."""
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](*arguments, **settings)
    return capsys.readouterr().out.splitlines()


def test_every_example_has_a_test():
    tested = {"naive_bayes", "heavy_hitters", "scoring", "partitioned"}
    assert tested == {path.stem for path in EXAMPLES.glob("*.py")}


def test_hot_domains_of_generated_posts_are_trending(spark, tmp_path, capsys):
    lines = printed("heavy_hitters", capsys, spark, tmp_path / "absent", capacity=50)
    assert len(lines) == 7
    assert all(line.split()[3].startswith("hot") for line in lines[1:])


@pytest.mark.needs_spark("4.0", reason="the example compares with applyInArrow")
def test_score_by_key_loads_few_profiles_twice(spark, tmp_path, capsys):
    """All methods score every click; `score_by_key` loads fewer profiles than round robin."""
    lines = printed("scoring", capsys, spark, tmp_path, clicks=4000, users=100, slots=4)
    loads = {line[:32].strip(): int(line.split()[-2].replace(",", "")) for line in lines[1:]}
    assert ["4,000"] * 4 == [line.split()[-1] for line in lines[1:]]
    least = loads["groupBy(user).applyInArrow"]
    assert least <= loads["score_by_key"] < loads["repartition(4).mapInArrow"]


def test_partitioned_writes_neither_giant_nor_many_files(spark, tmp_path, capsys):
    """The largest file is smaller than with key grouping, and there are fewer than without it."""
    lines = printed(
        "partitioned", capsys, spark, tmp_path, rows=16_000, rows_per_file=2000, countries=10
    )
    files, _, largest, _ = zip(*(line[32:].split() for line in lines[1:]), strict=True)
    whole, by_key, shuffled, ours = (int(number) for number in files)
    assert by_key <= ours < min(whole, shuffled) / 3
    assert int(largest[3]) < int(largest[1]) / 3


@pytest.mark.streaming
@pytest.mark.needs_spark("4.0", reason="sy.group_stream")
def test_naive_bayes_learns_from_a_stream(spark, tmp_path, capsys):
    """The last model of the stream classifies most texts correctly."""
    with kept(spark, STATE_IN_ROCKSDB):
        for name, value in STATE_IN_ROCKSDB.items():
            spark.conf.set(name, value)
        lines = printed("naive_bayes", capsys, spark, tmp_path, batches=4, each=60)
    texts, accuracies = zip(*(line.split()[1::2] for line in lines[1:]), strict=True)
    assert ("120", "240") == texts
    assert float(accuracies[-1].rstrip("%")) > 60
