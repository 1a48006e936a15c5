"""The doctor gives one recommendation, which may be to change nothing."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.doctor.advice import WORTH
from steelyard.doctor.diagnosis import diagnose
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import KeyCounts
from steelyard.doctor.work import WORKS, KindOfWork
from tests.strategies import KEY_COUNTS

SKEWED = {"hot": 6000, **{f"key {i}": 4 for i in range(1000)}}
NAMES = [work.name for work in WORKS]
EVEN = {f"key {i}": 10 for i in range(5000)}


def advice(plain, work="python", workers=8, **settings):
    job = Job(KindOfWork.named(work), settings.pop("key", ("page",)), workers, **settings)
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
    given = advice(EVEN, work)
    assert given.is_nothing
    assert "sy." not in given.code


@settings(max_examples=30)
@given(KEY_COUNTS, st.integers(1, 30), st.sampled_from(NAMES))
def test_a_change_is_recommended_only_if_it_pays_off(plain, workers, work):
    """A change is recommended if and only if it makes the job 1.25 times as fast."""
    found = diagnose(KeyCounts.of(plain, workers), Job(KindOfWork.named(work), ("k",), workers))
    kg, cg = found.costs[0].slowdown, found.costs[-1].slowdown
    is_worth_it = kg >= WORTH * cg and work != "aggregate"
    is_worth_it = is_worth_it and found.messages >= 10 * workers
    assert is_worth_it is not found.advice.is_nothing
    if found.skewed == "none" and found.messages >= 10 * workers:
        assert found.advice.is_nothing


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
    """With even keys on workers of unequal speed, the code passes the capacities."""
    given = advice(EVEN, capacities=(4, 1, 1, 1, 1, 1, 1, 1))
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
