"""All forms of a key, a weight or a salt mean the same, and a plan knows its key."""

import json

import pyarrow as pa
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

import steelyard as sy
from steelyard.plans import Planner, RoutingPlan
from steelyard.spark.balancer import Balancer
from steelyard.spark.resolved_columns import ResolvedColumns, of_command_line
from steelyard.spark.versions.arrow import to_arrow

ROWS, WORKERS = 3_000, 4


@pytest.fixture(scope="module")
def visits(spark):
    """Rows of a scan: half have one page and user, in several cases; the others one of 200."""
    return spark.range(0, ROWS, 1, 2).selectExpr(
        "if(id % 2 = 0, if(id % 4 = 0, 'Hot', 'HOT'), string(id % 200)) AS page",
        "named_struct('Id', if(id % 2 = 0, -1L, id % 200), 'ms', id % 7) AS user",
        "id",
    )


FORMS = {
    "column": [
        lambda: "page",
        lambda: "PAGE",
        lambda: F.col("page"),
        lambda: F.col("Page").alias("x"),
        lambda: F.expr("page"),
    ],
    "field": [
        lambda: "user.Id",
        lambda: "USER.id",
        lambda: F.col("user.ID"),
        lambda: F.col("user")["Id"].alias("x"),
    ],
    "expression": [
        lambda: F.lower("page"),
        lambda: F.lower(F.col("PAGE")).alias("x"),
        lambda: F.expr("lower(page)"),
    ],
}
"""The forms of three keys; expressions need a session, so they are made in the tests."""


def placed(frame):
    """The columns of a frame, and its rows with their partitions."""
    rows = frame.select("*", F.spark_partition_id().alias("place")).orderBy("id").collect()
    return frame.columns, [tuple(row) for row in rows]


def planned(frame, key):
    plan = sy.plan(frame, key, workers=WORKERS)
    return plan.to_json().lower(), plan.counts.tolist()


def grouped(frame, key):
    counts = sy.group_by(frame, key, workers=WORKERS).aggregate(sy.Count(), sy.Max("page"))
    return sorted(map(tuple, counts.collect()))


def mapped(frame, key):
    """What `map_arrow` hands over: the names of all columns, and the rows of each task."""

    def seen(table):
        return pa.table({"id": table["id"], "names": [",".join(table.column_names)] * len(table)})

    plan = sy.plan(frame, key, workers=WORKERS)
    given = sy.group_by(frame, key, workers=WORKERS, routing=plan)
    return placed(given.map_arrow(seen, "id long, names string"))


def hot(frame, key):
    found = sy.group_by(frame, key, workers=WORKERS, whole_light_keys=True)
    return [tuple(row) for row in found.hot_keys]


def balanced(frame, key):
    balancer = Balancer(key, workers=WORKERS)
    return placed(balancer.repartition(frame)), balancer.plan.to_json()


def examined(frame, key):
    return json.loads(sy.doctor.examine(frame, key, WORKERS).to_json().lower())


CALLS = {
    "plan": planned,
    "repartition": lambda frame, key: placed(sy.repartition(frame, WORKERS, key)),
    "aggregate": grouped,
    "map_arrow": mapped,
    "hot_keys": hot,
    "balancer": balanced,
    "examine": examined,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", FORMS)
def test_all_forms_of_a_key_have_the_same_result(visits, kind, call):
    """Partitions, plans, counts and advice do not depend on how the key is written."""
    first, *others = FORMS[kind]
    expected = CALLS[call](visits, first())
    for form in others:
        found = CALLS[call](visits, form())
        assert _without_code(expected) == _without_code(found)
    if call == "repartition":
        assert visits.columns == expected[0]
        assert list(range(ROWS)) == [row[2] for row in expected[1]]


def _without_code(result):
    """An examination without the line of code, which names a field as the user has written it."""
    if not isinstance(result, dict):
        return result
    return {name: value for name, value in result.items() if name != "recommendation"}


def test_an_expression_groups_as_the_same_column_does(visits):
    """The bucket of a row depends on the value of its key alone."""
    lower = visits.withColumn("lower", F.lower("page"))
    assert sy.plan(lower, "lower", workers=WORKERS) == sy.plan(
        visits, F.lower("page"), workers=WORKERS
    )
    expected = {tuple(row) for row in visits.groupBy(F.lower("page")).count().collect()}
    found = sy.group_by(visits, F.lower("page"), workers=WORKERS).aggregate(sy.Count())
    assert expected == {tuple(row) for row in found.collect()}


@pytest.mark.parametrize(
    "key",
    [
        lambda: ["page"],
        lambda: ["PAGE"],
        lambda: ["user.ID"],
        lambda: [F.lower("page"), "id"],
        lambda: [F.lower("page").alias("page")],
        lambda: [(F.col("user.Id") % 2).alias("a.b")],
    ],
)
def test_results_have_the_columns_of_group_by(visits, key):
    """The names and types of key columns are those that Spark's own `groupBy` gives."""
    ours = sy.group_by(visits, *key(), workers=2).aggregate(sy.Count(), sy.Max("page"))
    theirs = visits.groupBy(*key()).agg(F.count(F.lit(1)).alias("count"), F.max("page"))
    kinds = [(field.name, field.dataType) for field in theirs.schema.fields]
    assert kinds == [(field.name, field.dataType) for field in ours.schema.fields]
    assert sorted(map(tuple, theirs.collect())) == sorted(map(tuple, ours.collect()))


def test_case_matters_where_spark_says_so(spark, visits):
    """With `spark.sql.caseSensitive` another case is another name."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(ValueError, match=r"key: there is no column 'PAGE'; the columns are pa"):
            sy.repartition(visits, 2, "PAGE")
        with pytest.raises(ValueError, match=r"weight: there is no column 'ID'"):
            sy.plan(visits, "page", workers=2, weight="ID")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_literal_name_comes_before_a_field(visits):
    """A column named `user.Id` is the key, not the field of `user`."""
    both = visits.withColumn("user.Id", F.col("page"))
    assert sy.plan(both, "user.Id", workers=2) == sy.plan(both, "page", workers=2)
    assert ("user.Id",) == ResolvedColumns.of(both, ["USER.ID"]).key


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (lambda: F.lower("nope"), r"key: Spark cannot compute Column<'lower\(nope\)'>: \[UNRESO"),
        (lambda: "user.nope", "key: there is no column 'user.nope'; the columns are page, user, i"),
        (lambda: "a..b", "key: there is no column 'a..b'"),
        (lambda: F.col("*"), "must be one column, got 3 columns"),
        (lambda: F.max("page"), "must be computed from one row, and aggregates, window functions"),
        (lambda: F.explode(F.array("page")), "must be computed from one row"),
        (
            lambda: F.row_number().over(Window.partitionBy("page").orderBy("id")),
            "must be computed from one row",
        ),
        (F.rand, r"comes from rand\(\); its value may differ after a task retry"),
        (lambda: F.round(F.rand(7) * 3).alias("x"), r"comes from rand\(\)"),
        (lambda: F.expr("uuid()"), r"comes from uuid\(\)"),
        (lambda: F.create_map("page", "id"), "is map<string,bigint>, which Spark cannot hash"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda frame, key: sy.plan(frame, key, workers=2),
        lambda frame, key: sy.repartition(frame, 2, key),
        lambda frame, key: sy.group_by(frame, key, workers=2),
        lambda frame, key: Balancer(key, workers=2).repartition(frame),
        lambda frame, key: sy.doctor.examine(frame, key, 2),
    ],
    ids=["plan", "repartition", "group_by", "balancer", "examine"],
)
def test_bad_expressions_are_refused(visits, call, key, sentence):
    """Each call refuses them in one sentence; the job of this frame would fail."""
    fails = visits.where(F.raise_error(F.lit("a job has run")).isNull())
    with pytest.raises(ValueError, match=sentence) as refused:
        call(fails, key())
    assert "\n" not in str(refused.value)


def test_neither_a_name_nor_an_expression_is_refused(visits):
    """Lists and numbers are none."""
    with pytest.raises(TypeError, match="key must be column names or Columns, got 3"):
        sy.repartition(visits, 2, 3)
    with pytest.raises(TypeError, match="pass the columns one by one, 'page', 'id', not as a list"):
        sy.plan(visits, ["page", "id"], workers=2)


def test_a_key_of_random_values_is_refused(visits):
    """An expression is as doubtful as the columns that it is computed from."""
    random = visits.repartition(2).withColumn("r", F.rand())
    with pytest.raises(ValueError, match=r"key: Column<.*> comes from rand\(\) after a shuffle"):
        sy.repartition(random, 2, F.floor(F.col("r") * 10))
    assert not ResolvedColumns.of(visits, [F.lower("page")]).repeated.doubts
    python = F.udf(lambda page: page.lower(), StringType())("page")
    assert not ResolvedColumns.of(visits, [python]).in_order


def test_a_function_of_the_user_is_a_key(visits):
    """Spark does not show whether it is deterministic; it says so unless the user objects."""
    lower = F.udf(lambda page: page.lower(), StringType())
    found = sy.repartition(visits, WORKERS, lower("page"))
    assert placed(sy.repartition(visits, WORKERS, F.lower("page"))) == placed(found)


def test_a_weight_and_a_salt_may_be_fields_or_in_another_case(visits):
    """They have the results of a column of the same values."""
    flat = visits.withColumn("ms", F.col("user.ms"))
    expected = sy.plan(flat, "page", workers=WORKERS, weight="ms")
    for weight in ("MS", "user.ms"):
        assert expected == sy.plan(flat, "page", workers=WORKERS, weight=weight)
    spread = placed(sy.repartition(flat, WORKERS, "page", weight="ms", salt=["id", "ms"]))
    written = {"weight": "user.ms", "salt": ["ID", "user.MS"]}
    assert spread == placed(sy.repartition(flat, WORKERS, "page", **written))
    work = sy.group_by(flat.repartition(2), "page", workers=2, **written).aggregate(sy.Count())
    assert sorted(work.collect()) == sorted(flat.groupBy("page").count().collect())
    with pytest.raises(ValueError, match="weight: column 'user' must hold numbers, got struct<"):
        sy.plan(visits, "page", workers=2, weight="user")
    negative = visits.withColumn("user", F.expr("named_struct('ms', -id)"))
    with pytest.raises(
        ValueError, match=r"weight: column 'user\.ms' must hold numbers of at least"
    ):
        sy.plan(negative, "page", workers=2, weight="user.ms")


@pytest.mark.parametrize(
    ("made_for", "used_for", "now"),
    [
        (lambda: ["page"], lambda: ["id"], "for the key 'page', not for 'id'"),
        (
            lambda: ["page"],
            lambda: [F.lower("page")],
            r"for the key 'page', not for 'lower\(page\)",
        ),
        (
            lambda: ["page", "id"],
            lambda: ["id", "page"],
            "for the key 'page', 'id', not for 'id', ",
        ),
        (lambda: [F.lower("page")], lambda: [F.upper("page").alias("lower(page)")], "not for 'upp"),
    ],
)
def test_a_plan_for_another_key_is_refused(visits, made_for, used_for, now):
    """It would balance nothing; a plan that was saved as JSON is refused too."""
    plan = sy.plan(visits, *made_for(), workers=2)
    for routing in (plan, RoutingPlan.from_json(plan.to_json())):
        with pytest.raises(ValueError, match=now):
            sy.repartition(visits, 2, *used_for(), routing=routing)
        with pytest.raises(ValueError, match=now):
            sy.group_by(visits, *used_for(), workers=2, routing=routing)


def test_a_plan_of_unknown_key_is_accepted(visits):
    """A plan of counts, or one that an earlier version wrote, has no key."""
    plan = sy.plan(visits, "page", workers=2)
    older = json.loads(plan.to_json())
    assert ["page"] == older.pop("key")
    for routing in (RoutingPlan.from_json(json.dumps(older)), Planner(2).update(plan.counts)):
        assert routing.key is None
        assert "key" not in json.loads(routing.to_json())
        expected = placed(sy.repartition(visits, 2, "page", routing=plan))
        assert expected == placed(sy.repartition(visits, 2, "page", routing=routing))


def test_the_command_line_takes_columns_fields_and_sql(visits):
    """A column or a field comes before an expression."""
    assert ["PAGE", "user.id"] == [of_command_line(visits, text) for text in ("PAGE", "user.id")]
    given = of_command_line(visits, "lower(page)")
    assert sy.plan(visits, given, workers=2) == sy.plan(visits, F.lower("page"), workers=2)
    for text in ("pgae", "lower(", "lower(x)"):
        with pytest.raises(ValueError, match="is neither a column nor an expression; the columns"):
            of_command_line(visits, text)


def test_no_key_column_is_shuffled(visits, capsys):
    """`repartition` routes by the expressions, so the shuffled rows are not wider than before."""
    balanced = sy.repartition(visits, 2, F.lower("page"), salt=["user.Id"])
    assert visits.schema == balanced.schema
    assert to_arrow(visits.orderBy("id")) == to_arrow(balanced.orderBy("id"))
    balanced.explain(extended=True)
    assert "__steelyard" not in capsys.readouterr().out
