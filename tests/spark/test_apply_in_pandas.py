"""`apply_in_pandas` calls a function with all rows of a key, like Spark's `applyInPandas`."""

import datetime
import decimal
from functools import partial

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

import steelyard as sy
from tests.spark.streaming.running import kept
from tests.spark.test_grouping import jobs
from tests.spark.test_map_pandas import COLUMNS, seen

ROWS = 20_000
SEEN = "name string, dtype string, v array<string>"


@pytest.fixture(scope="module")
def skewed(spark):
    """Return rows of a scan: half of them have one key, the others one of 500."""
    return spark.range(0, ROWS, 1, 3).selectExpr(
        "if(id % 2 = 0, 'hot', concat('page ', id % 1000)) AS page", "id", "id % 7 / 2 AS cost"
    )


def as_texts(frame):
    """Return the rows of a frame as sorted texts."""
    return sorted(map(repr, frame.collect()))


def sums(key, rows):
    """Return the number of rows, their sum, and their key."""
    return pd.DataFrame({"page": [key[0]], "n": [len(rows)], "sum": [rows["id"].sum()]})


def merged_sums(parts):
    """Add the sums of several parts."""
    return parts.groupby("page", as_index=False).sum()


SUMS = "page string, n long, sum long"


@pytest.mark.parametrize("shuffled", [False, True], ids=["scan", "shuffle"])
def test_light_keys_have_one_call_and_hot_keys_one_for_each_part(skewed, shuffled):
    """Light keys have the result of Spark; the parts of the hot key have all its rows."""
    frame = skewed.repartition(2) if shuffled else skewed
    grouped = sy.group_by(frame, "page", workers=4)
    made = grouped.apply_in_pandas(sums, SUMS).collect()
    expected = skewed.groupBy("page").applyInPandas(sums, SUMS)
    light = [tuple(row) for row in made if row.page != "hot"]
    assert sorted(light) == sorted(map(tuple, expected.where("page != 'hot'").collect()))
    parts = [row for row in made if row.page == "hot"]
    assert [row["page"] for row in grouped.hot_keys] == ["hot"]
    assert len(parts) > 1
    assert sum(row.n for row in parts) == ROWS / 2
    assert sum(row["sum"] for row in parts) == sum(range(0, ROWS, 2))


def test_a_merge_gives_every_key_one_result(skewed):
    """With a merge, all results are those of Spark."""
    ours = sy.group_by(skewed, "page", workers=4).apply_in_pandas(sums, SUMS, merge=merged_sums)
    assert as_texts(ours) == as_texts(skewed.groupBy("page").applyInPandas(sums, SUMS))


def test_partial_results_may_have_other_columns(skewed):
    """A mean is merged from sums and counts, which `hot` returns for each part."""

    def mean(rows):
        return pd.DataFrame({"page": rows["page"].iloc[:1], "mean": [rows["cost"].mean()]})

    def hot(rows):
        return pd.DataFrame({"total": [rows["cost"].sum()], "n": [len(rows)], "any": [{1, "x"}]})

    def merge(key, parts):
        assert list(parts["any"]) == [{1, "x"}] * len(parts)
        assert len(parts) > 1
        mean = parts["total"].sum() / parts["n"].sum()
        return pd.DataFrame({"page": [key[0]], "mean": [mean]})

    schema = "page string, mean double"
    ours = sy.group_by(skewed, "page", workers=4).apply_in_pandas(mean, schema, hot, merge)
    expected = {
        row.page: row.mean for row in skewed.groupBy("page").applyInPandas(mean, schema).collect()
    }
    rows = ours.collect()
    assert len(rows) == len(expected)
    assert {row.page: row.mean for row in rows} == pytest.approx(expected)


def test_parts_go_to_the_function_for_hot_keys(skewed):
    """Without a merge, its results are results."""

    def light(rows):
        return pd.DataFrame({"page": rows["page"].iloc[:1], "who": ["light"]})

    def hot(key, rows):
        return pd.DataFrame([(key[0], f"hot {len(rows)}")])

    grouped = sy.group_by(skewed, "page", workers=4, whole_light_keys=True)
    made = grouped.apply_in_pandas(light, "page string, who string", hot).collect()
    assert {row.who for row in made if row.page != "hot"} == {"light"}
    parts = [row.who for row in made if row.page == "hot"]
    assert len(parts) > 1
    assert sum(int(who.removeprefix("hot ")) for who in parts) == ROWS / 2
    assert len(made) == 500 + len(parts)


@pytest.mark.needs_spark("4.2", reason="integers beside a null in a list stay integers")
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_values_are_those_of_apply_in_pandas(spark, zone):
    """Every type arrives as it does there."""
    with kept(spark, ["spark.sql.session.timeZone"]):
        spark.conf.set("spark.sql.session.timeZone", zone)
        rows = spark.range(3).selectExpr("1 AS key", *(f"{v} AS {k}" for k, v in COLUMNS.items()))
        rows = rows.coalesce(1)
        by_spark = rows.groupBy("key").applyInPandas(seen, SEEN).collect()
        ours = sy.group_by(rows, "key", workers=1).apply_in_pandas(seen, SEEN).collect()
    assert sorted(map(tuple, ours)) == sorted(map(tuple, by_spark))


TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "hot", "hot", "hot"]))
NUMBERS = st.one_of(st.none(), st.integers(-5, 5))
MOMENTS = st.one_of(
    st.none(), st.integers(0, 3).map(lambda day: datetime.datetime(2020, 1, 1 + day))
)
AMOUNTS = st.one_of(st.none(), st.integers(-9, 9).map(lambda n: decimal.Decimal(n) / 100))
BYTES = st.one_of(st.none(), st.binary(max_size=1))
REALS = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]))
KINDS = "t string, n int, m timestamp, d decimal(5,2), b binary, f double, y boolean"
FRAMES = st.lists(
    st.tuples(TEXTS, NUMBERS, MOMENTS, AMOUNTS, BYTES, REALS, st.booleans()), max_size=40
)
KEYS = st.sampled_from([["t"], ["n"], ["m", "t"], ["d"], ["b", "n"], ["f"], ["y", "f", "t"]])


@given(rows=FRAMES, key=KEYS, buckets=st.sampled_from([4, 8192]))
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_random_frames_give_the_results_of_spark(spark, rows, key, buckets):
    """Keys of any type, nulls, NaN, both zeros and empty frames; parts of hot keys are merged."""

    def texts(key, part):
        # Integers beside a null are floating-point numbers, and a part of a key may have no null.
        values = part.drop(columns="n").itertuples(index=False, name=None)
        return pd.DataFrame({"key": [repr(key)], "rows": [sorted(map(repr, values))]})

    def merge(key, parts):
        assert set(parts["key"]) == {repr(key)}
        return pd.DataFrame({"key": [repr(key)], "rows": [sorted(parts["rows"].sum())]})

    schema = "key string, rows array<string>"
    numbered = [(*row, place) for place, row in enumerate(rows)]
    made = spark.createDataFrame(numbered, f"{KINDS}, id long").repartition(2)
    expected = as_texts(made.groupBy(*key).applyInPandas(texts, schema))
    grouped = sy.group_by(made, *key, workers=4, salt=["id"], routing=sy.Balance(buckets=buckets))
    assert expected == as_texts(grouped.apply_in_pandas(texts, schema, merge=merge))


def test_a_frame_without_rows_has_no_calls(spark):
    """The result has the columns of the schema."""
    empty = spark.range(0).selectExpr("string(id) AS page", "id")
    grouped = sy.group_by(empty, "page", workers=2)
    made = grouped.apply_in_pandas(sums, SUMS, hot=sums, merge=merged_sums)
    assert made.columns == ["page", "n", "sum"]
    assert made.collect() == []


def no_frame(rows):
    """Return a number."""
    return 1


@pytest.mark.parametrize(
    ("functions", "sentence"),
    [
        ({"function": no_frame}, "function 'no_frame' must return a pandas DataFrame, got int"),
        (
            {"function": lambda rows: rows},
            "function '<lambda>' must return the columns of the schema, page, n, sum, got page, id",
        ),
        ({"hot": no_frame}, "hot 'no_frame' must return a pandas DataFrame, got int"),
        (
            {"hot": no_frame, "merge": merged_sums},
            "hot 'no_frame' must return a pandas DataFrame, got int",
        ),
        ({"merge": no_frame}, "merge 'no_frame' must return a pandas DataFrame, got int"),
        (
            {"merge": lambda parts: merged_sums(parts).assign(n="many")},
            "merge '<lambda>' must return int64 in column 'n', as the schema says, got object",
        ),
    ],
)
def test_a_wrong_result_is_refused_in_one_sentence(skewed, functions, sentence):
    """The sentence names the argument, its function, what it returned, and what is allowed."""
    grouped = sy.group_by(skewed.drop("cost"), "page", workers=4)
    with pytest.raises(Exception, match=f"apply_in_pandas: {sentence}"):
        grouped.apply_in_pandas(**{"function": sums, "schema": SUMS} | functions).collect()


def test_bad_arguments_are_refused_before_any_job(skewed):
    """One sentence names the argument."""
    before = jobs(skewed)
    grouped = sy.group_by(skewed, "page", workers=2)
    with pytest.raises(TypeError, match="function must be callable, got 1"):
        grouped.apply_in_pandas(1, SUMS)
    with pytest.raises(TypeError, match="hot must be callable, got 'sums'"):
        grouped.apply_in_pandas(sums, SUMS, hot="sums")
    with pytest.raises(TypeError, match=r"merge must take one argument, .* takes 3"):
        grouped.apply_in_pandas(sums, SUMS, merge=lambda key, parts, more: parts)
    with pytest.raises(TypeError, match=r"function must take one argument, .* takes 0"):
        grouped.apply_in_pandas(lambda: None, SUMS)
    nested = sy.group_by(skewed.selectExpr("struct(page) AS s"), "s", workers=2)
    with pytest.raises(ValueError, match=r"key: column 's' has the type struct<page:string>, but"):
        nested.apply_in_pandas(sums, SUMS)
    assert before == jobs(skewed)
    for routing, kind in (
        (sy.Planner(2).plan, "RoutingPlan"),
        (sy.schemes.named("kg"), "KeyGroup"),
    ):
        planned = sy.group_by(skewed, "page", workers=2, routing=routing)
        with pytest.raises(ValueError, match=f"in which only hot keys are split; .* not a {kind}"):
            planned.apply_in_pandas(sums, SUMS)


def test_a_function_with_bound_arguments_takes_the_others(skewed):
    """As in Spark, `functools.partial` reduces the number of arguments."""

    def first(rows, column):
        return rows[[column]].head(1)

    pages = sy.group_by(skewed, "page", workers=2)
    made = pages.apply_in_pandas(partial(first, column="page"), "page string", merge=first_page)
    assert len(made.collect()) == made.distinct().count() == 501


def first_page(parts):
    """Return one of the equal parts."""
    return parts.head(1)


def test_functions_get_the_columns_of_the_frame_when_the_key_is_computed(skewed):
    """A key that is an expression or a field has its values; rows have no other columns."""
    key = F.upper(F.col("page")).alias("name")

    def described(key, rows):
        names = ",".join(rows.columns)
        return pd.DataFrame({"page": [key[0]], "names": [names], "n": [len(rows)]})

    schema = "page string, names string, n long"
    made = sy.group_by(skewed, key, workers=4).apply_in_pandas(described, schema)
    expected = skewed.withColumn("page", F.upper("page")).groupBy("page").count()
    found = made.groupBy("page", "names").agg(F.sum("n").alias("count"))
    assert as_texts(found.select("page", "count")) == as_texts(expected)
    assert [row[0] for row in found.select("names").distinct().collect()] == ["page,id,cost"]
