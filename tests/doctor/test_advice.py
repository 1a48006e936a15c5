"""One recommendation, and "nothing" where nothing has to be done."""

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
    """Spark combines on the map side, however skewed the data is."""
    told = advice(plain, "aggregate", workers)
    assert told.is_nothing
    assert 'df.groupBy("page").agg(...)' == told.code


@pytest.mark.parametrize("work", NAMES)
def test_even_keys_need_nothing(work):
    """No skew, no change, and Spark's own code."""
    told = advice(EVEN, work)
    assert told.is_nothing
    assert "sy." not in told.code


@settings(max_examples=30)
@given(KEY_COUNTS, st.integers(1, 30), st.sampled_from(NAMES))
def test_a_change_is_told_only_where_it_is_worth_it(plain, workers, work):
    """What is recommended gains a quarter at least; what gains that is recommended."""
    found = diagnose(KeyCounts.of(plain, workers), Job(KindOfWork.named(work), ("k",), workers))
    kg, cg = found.costs[0].slow_down, found.costs[-1].slow_down
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
    """The line that a user would paste."""
    assert code == advice(SKEWED, work).code


def test_code_names_odd_several_and_nested_columns():
    """Quotes are escaped, several columns are listed, fields become columns first."""
    assert (
        r'sy.join(df, other, ["a\"b", "c"], workers=8)'
        == advice(SKEWED, "join", key=('a"b', "c")).code
    )
    assert (
        'sy.repartition(df.withColumn("user_id", F.col("user.id")), 8, "user_id")'
        ".write.parquet(path)"
        == advice(SKEWED, "write", key=("user.id",), nested=("user.id",)).code
    )


@pytest.mark.parametrize("work", sorted({*NAMES} - {"aggregate"}))
def test_hot_nulls_are_to_be_filtered(work):
    """They are no keys, most often; and joined with this package they would not match either."""
    told = advice({None: 30_000, **EVEN}, work)
    assert "filter the nulls, or check the column" == told.what
    assert re.match(r'(df|stream)\.dropna\(subset=\["page"\]\)\.[a-zA-Z]+\(', told.code)
    assert ("sy." in told.why) is (work != "join")
    assert "37.50 % of the messages have a null in their key" in told.why


def test_nulls_that_fit_are_keys_like_others():
    """What is hot beside them decides."""
    assert "sy.join" in advice({None: 10, **SKEWED}, "join").code


def test_where_all_keys_are_null_the_column_is_to_be_checked():
    """Nothing is left that could be filtered."""
    told = advice({None: 6000}, "join")
    assert "check the column: all keys are null" == told.what
    assert 'df.groupBy("page").count()' == told.code


def test_slow_workers_are_a_reason_too():
    """Even keys on uneven machines: the code names the capacities."""
    told = advice(EVEN, capacities=(4, 1, 1, 1, 1, 1, 1, 1))
    assert not told.is_nothing
    assert "capacities=capacities" in told.code


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
    """A stream gets its capacities with its placement, the others directly."""
    assert code == advice(SKEWED, work, capacities=(1.0,) * 8).code


def test_columns_with_braces_are_kept_in_code():
    """A column name is never taken for a part of a template."""
    assert (
        'sy.join(df, other, "{keys} {x}", workers=8)'
        == advice(SKEWED, "join", key=("{keys} {x}",)).code
    )


def test_hardly_any_data_needs_nothing():
    """Three messages are not worth a thought."""
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
def test_bad_settings_get_a_sentence(settings, sentence):
    """What was given, and what is allowed."""
    job = {"key": ("k",), "workers": 3, **settings}
    with pytest.raises(ValueError, match=sentence):
        Job(KindOfWork.named(job.pop("work", "python")), **job)
