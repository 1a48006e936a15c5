"""The doctor gives one recommendation, which may be to change nothing."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.doctor.advice import ENOUGH, WORTH
from steelyard.doctor.diagnosis import diagnose
from steelyard.doctor.estimates import Estimates
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import KeyCounts
from steelyard.doctor.work import WORKS, KindOfWork
from tests.strategies import KEY_COUNTS

SKEWED = {"hot": 6000, **{f"key {i}": 4 for i in range(1000)}}
NAMES = [work.name for work in WORKS]
EVEN = {f"key {i}": 10 for i in range(5000)}


def advice(plain, work="python", workers=8, row_time=1000, **settings):
    sizes = {name: settings.pop(name, None) for name in ("row_bytes", "other_bytes")}
    estimates = Estimates(row_time, **sizes)
    key = settings.pop("key", ("page",))
    job = Job(KindOfWork.named(work), key, workers, estimates=estimates, **settings)
    return diagnose(KeyCounts.of(plain, workers), job).advice


@settings(max_examples=30)
@given(KEY_COUNTS, st.integers(1, 30))
def test_an_aggregate_needs_nothing(plain, workers):
    """Spark combines on the map side, even for skewed data."""
    given = advice(plain, "aggregate", workers)
    assert given.is_nothing
    assert 'df.groupBy("page").agg(...)' == given.code


@pytest.mark.parametrize("work", NAMES)
def test_even_keys_need_nothing(work):
    """Without skew, Spark's own code is recommended."""
    given = advice(EVEN, work, row_bytes=100_000)
    assert given.is_nothing
    assert "sy." not in given.code


@settings(max_examples=30)
@given(KEY_COUNTS, st.integers(1, 30), st.sampled_from(NAMES))
def test_a_change_is_recommended_only_if_it_pays_off(plain, workers, work):
    """A change is recommended if and only if it makes the stage 1.25 times as fast."""
    job = Job(KindOfWork.named(work), ("k",), workers, estimates=Estimates(row_time=1e6))
    found = diagnose(KeyCounts.of(plain, workers), job)
    times = {cost.strategy.name: cost.with_overhead for cost in found.costs}
    own = times["adaptive" if work == "join" else "kg"]
    remedy = min(times.get("kg-more", np.inf), times.get("adaptive-small", np.inf))
    is_worth_it = own >= WORTH * min(remedy, times["cg"]) and work != "aggregate"
    is_worth_it = is_worth_it and found.messages >= 10 * workers
    is_only_null = plain.keys() == {None} and workers > 1 and work != "aggregate"
    assert (is_worth_it or (is_only_null and found.messages >= 10 * workers)) is not (
        found.advice.is_nothing
    )
    if is_worth_it and "null" not in found.advice.what:
        assert ("sy." in found.advice.code) is (remedy > ENOUGH * times["cg"])


@pytest.mark.parametrize(
    ("work", "code"),
    [
        ("python", 'sy.group_by(df, "page", workers=8).map_arrow(function, schema)'),
        ("join", 'sy.join(df, other, "page", workers=8)'),
        ("write", 'sy.repartition(df, 8, "page").write.parquet(path)'),
        (
            "stream",
            (
                'sy.group_stream(stream, "page", workers=8, control="/shared/path")'
                ".aggregate(sy.Count())"
            ),
        ),
    ],
)
def test_each_work_has_its_line_of_code(work, code):
    """A user can paste the line."""
    assert code == advice(SKEWED, work).code


def test_code_names_odd_several_and_nested_columns():
    """Quotes are escaped, several columns are listed, nested fields become columns first."""
    assert (
        r'sy.join(df, other, ["a\"b", "c"], workers=8)'
        == advice(SKEWED, "join", key=('a"b', "c")).code
    )
    assert (
        'sy.repartition(df.withColumn("user_id", F.col("user.id")), 8, "user_id")'
        ".write.parquet(path)"
        == advice(SKEWED, "write", key=("user.id",), computed={"user.id": 'F.col("user.id")'}).code
    )


@pytest.mark.parametrize("work", sorted({*NAMES} - {"aggregate"}))
def test_filtering_is_recommended_for_hot_nulls(work):
    """Hot nulls are usually missing keys, and in a join they never match."""
    given = advice({None: 30_000, **EVEN}, work)
    assert "filter the nulls, or check the column" == given.what
    assert re.match(r'(df|stream)\.dropna\(subset=\["page"\]\)\.[a-zA-Z]+\(', given.code)
    assert ("sy." in given.why) is (work != "join")
    assert "37.50 % of the messages have a null in their key" in given.why


def test_a_null_that_is_not_hot_is_an_ordinary_key():
    """The recommendation follows from the other keys."""
    assert "sy.join" in advice({None: 10, **SKEWED}, "join").code


def test_the_column_is_to_be_checked_if_all_keys_are_null():
    given = advice({None: 6000}, "join")
    assert "check the column: all keys are null" == given.what
    assert 'df.groupBy("page").count()' == given.code


def test_a_change_is_recommended_for_slow_workers():
    """With even keys on workers of unequal speed, the code passes the capacities.

    More partitions would let the fast worker take more tasks, but three keys fill few partitions.
    """
    given = advice({"a": 3000, "b": 3000, "c": 3000}, capacities=(4, 1, 1, 1, 1, 1, 1, 1))
    assert not given.is_nothing
    assert "capacities=capacities" in given.code


@pytest.mark.parametrize(
    ("work", "code"),
    [
        (
            "python",
            'sy.group_by(df, "page", workers=8, capacities=capacities).map_arrow(function, schema)',
        ),
        ("join", 'sy.join(df, other, "page", workers=8, capacities=capacities)'),
        ("write", 'sy.repartition(df, 8, "page", capacities=capacities).write.parquet(path)'),
        (
            "stream",
            (
                'sy.group_stream(stream, "page", workers=8, '
                'placement=sy.Delegated(capacities=capacities), control="/shared/path")'
                ".aggregate(sy.Count())"
            ),
        ),
    ],
)
def test_each_work_has_its_line_of_code_with_capacities(work, code):
    """A stream gets capacities with its placement; other work gets them directly."""
    assert code == advice(SKEWED, work, capacities=(1.0,) * 8).code


def test_columns_with_braces_are_kept_in_code():
    """A column name is never interpreted as part of a template."""
    assert (
        'sy.join(df, other, "{keys} {x}", workers=8)'
        == advice(SKEWED, "join", key=("{keys} {x}",)).code
    )


def test_hardly_any_data_needs_nothing():
    assert advice({"a": 3}).what == "nothing: there is hardly any data"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"work": "magic"}, "work must be one of python, aggregate, .* got 'magic'"),
        ({"workers": 0}, "workers must be a whole number, from 1 to 8,192, got 0"),
        ({"capacities": (1.0, 2.0)}, "capacities must be one number for each of 3 workers, got 2"),
        ({"capacities": (1.0, 0.0, 1.0)}, "capacities must be positive numbers, got 0.0 at 1"),
        ({"capacities": (1.0, float("nan"), 1.0)}, "capacities must be positive numbers, got nan"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(settings, sentence):
    """The sentence names the bad value and the allowed ones."""
    job = {"key": ("k",), "workers": 3, **settings}
    with pytest.raises(ValueError, match=sentence):
        Job(KindOfWork.named(job.pop("work", "python")), **job)


MILD = {f"key {i}": round(13_000 * (i + 1) ** -0.7) for i in range(20_000)}
"""No key is too large for one of 24 workers, but some workers get several large keys."""


def test_more_partitions_are_recommended_where_they_are_enough():
    """Only the number changes, and every key stays in one task."""
    given = advice(MILD, "python", 24)
    found = re.fullmatch(
        r'df\.repartition\((\d+), "page"\)\.mapInArrow\(function, schema\)', given.code
    )
    assert int(found[1]) in {48, 96, 192, 200}
    assert f"use {found[1]} partitions" == given.what
    assert "All rows of a key stay in one task" in given.why
    written = advice(MILD, "write", 24)
    assert "files instead of 24" in written.why
    assert "sy." not in written.code


def test_more_partitions_are_not_enough_for_a_hot_key():
    """A key is in one partition, however many there are."""
    given = advice(SKEWED)
    assert "sy.group_by" in given.code
    assert re.search(r"With \d+ partitions it would be \d+\.\d+ times", given.why)


def test_more_partitions_cost_more_than_they_save_if_rows_are_cheap():
    """With 0.1 s for each task and 1 microsecond for each row, nothing helps."""
    given = advice(MILD, "python", 24, row_time=1)
    assert given.is_nothing
    assert "nothing: the stage is too short for it to matter" == given.what


HOT_JOIN = {"hot": 400_000, **{f"key {i}": 8 for i in range(100_000)}}


def test_a_hot_key_below_the_limit_of_adaptive_execution_needs_settings():
    """The settings let Spark split a partition of less than 256 MB."""
    given = advice(HOT_JOIN, "join", 8, row_time=10, row_bytes=100)
    setting = (
        r'spark\.conf\.set\(\n    "spark.sql.adaptive.advisoryPartitionSizeInBytes", "\dMB"\n\)\n'
    )
    assert re.match(setting, given.code)
    assert given.code.endswith('df.join(other, "page")')
    assert "splits the largest, about 39 MB" in given.why


def test_adaptive_execution_splits_a_very_hot_key_itself():
    """Nothing is needed where the hot partition exceeds 256 MB."""
    given = advice(HOT_JOIN, "join", 8, row_time=10, row_bytes=20_000)
    assert "nothing: Spark's adaptive execution balances the join" == given.what


def test_a_small_table_is_broadcast():
    """Up to 10 MB Spark does it without being asked."""
    hot = {"plain": HOT_JOIN, "work": "join", "row_time": 10, "row_bytes": 100}
    assert "nothing: Spark broadcasts the other DataFrame" == advice(**hot, other_bytes=1e7).what
    assert 'df.join(F.broadcast(other), "page")' == advice(**hot, other_bytes=1e8).code
    assert "broadcast" not in advice(**hot, other_bytes=1e9).code


@pytest.mark.parametrize("name", ["row_time", "row_bytes", "other_bytes"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_bad_estimates_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a positive number, got "):
        Estimates(**{name: value})


@pytest.mark.parametrize("row_time", [0.5, 100, 20_000, 2_000_000, 3e9])
def test_long_times_have_no_exponent(row_time):
    """A stage of minutes or hours is given in these units."""
    job = Job(KindOfWork.named("python"), ("page",), 8, estimates=Estimates(row_time))
    found = diagnose(KeyCounts.of(SKEWED, 8), job)
    assert "microseconds" in found.advice.why
    assert not re.search(r"\de[+-]\d", found.advice.why + found.assumptions)
