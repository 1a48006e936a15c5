"""A balanced join has the rows of Spark's join, equal partitions, and one shuffle per frame."""

import datetime
import decimal
import warnings

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.plans import Planner, RoutingPlan
from steelyard.plans.cells import WHOLE
from steelyard.spark.columns import Key, salt_of
from steelyard.spark.joining import join
from steelyard.spark.native_routing import BIN, with_bin, with_every_bin
from steelyard.spark.versions.arrow import from_arrow, to_arrow
from tests.spark.query_plans import explained, operators

ROWS, KEYS, WORKERS = 60_000, 5_000, 8
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
LATE_BROADCAST = "spark.sql.adaptive.autoBroadcastJoinThreshold"
ADAPTIVE = "spark.sql.adaptive.enabled"


@pytest.fixture(scope="module")
def views(spark):
    """Return skewed rows: 37 % have one key, which is the share of three workers."""
    place = (F.pmod(F.xxhash64("id"), F.lit(2**20)) + 1) / 2**20
    page = F.pow(place, F.lit(-1.5)).cast("long") % KEYS
    return spark.range(0, ROWS, 1, 3).select(page.alias("page"), "id").cache()


@pytest.fixture(scope="module")
def pages(spark):
    """Return two rows for each of the first keys; some rows of `views` have no match."""
    return spark.range(0, KEYS, 1, 2).selectExpr(
        "id div 2 AS page", "concat('title ', id) AS title"
    )


@pytest.fixture(scope="module")
def planned(views):
    return sy.plan(views, "page", workers=WORKERS)


@pytest.fixture
def configured(spark):
    """Return a function that changes Spark settings for one test."""
    before = {name: spark.conf.get(name, None) for name in (ADAPTIVE, BROADCAST, LATE_BROADCAST)}
    yield lambda values: [spark.conf.set(name, value) for name, value in values.items()]
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def frame_of(spark, rows, kinds):
    """Return a frame made from Arrow data, which needs no Python process."""
    types = {"int": pa.int32(), "string": pa.string()}
    named = [kind.split() for kind in kinds.split(", ")]
    columns = zip(*rows, strict=True) if rows else [[]] * len(named)
    pairs = zip(named, columns, strict=True)
    table = pa.table({name: pa.array(column, types[kind]) for (name, kind), column in pairs})
    return from_arrow(spark, table)


def multiset(frame):
    """Return all rows as sorted text, so that nested values can be compared."""
    return sorted(map(repr, frame.collect()))


def assert_same(ours, sparks):
    """Compare the names, types and order of columns, and the rows with their multiplicity."""
    assert sparks.columns == ours.columns
    kinds = [[field.dataType for field in frame.schema.fields] for frame in (sparks, ours)]
    assert kinds[0] == kinds[1]
    assert multiset(sparks) == multiset(ours)


keys = st.one_of(st.none(), st.integers(0, 3))
names = st.one_of(st.none(), st.sampled_from(["", "a", "b"]))
big_rows = st.lists(st.tuples(keys, names, st.integers(0, 5)), max_size=25)
small_rows = st.lists(st.tuples(names, keys, st.sampled_from("xyz")), max_size=8)


@given(
    big=big_rows,
    small=small_rows,
    on=st.sampled_from(["k", ["k"], ["n"], ["n", "k"]]),
    how=st.sampled_from(["inner", "left"]),
    workers=st.integers(1, 4),
)
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_the_rows_are_those_of_sparks_join(spark, big, small, on, how, workers):
    """This holds for null keys, empty frames, single rows and hot keys."""
    left = frame_of(spark, big, "k int, n string, v int")
    right = frame_of(spark, small, "n string, k int, w string")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # equal rows of a hot key are common here
        ours = join(left, right, on, how, workers=workers, routing=sy.Balance(buckets=4))
    assert_same(ours, left.join(right, on, how))


@pytest.mark.parametrize(("big", "small"), [(0, 3), (3, 0), (0, 0), (1, 1)])
def test_empty_frames_and_single_rows_join(spark, big, small):
    """The rows are those of Spark's join."""
    left, right = spark.range(big), spark.range(small).selectExpr("id", "id + 1 AS next")
    for how in ("inner", "left"):
        assert_same(join(left, right, "id", how, workers=3), left.join(right, "id", how))


def partitions(frame):
    """Return the number of rows of each partition."""
    return frame.groupBy(F.spark_partition_id().alias("p")).count().collect()


def test_a_left_join_spreads_null_keys_and_an_inner_join_drops_them(spark):
    """The partitions are equal in both cases, where half of the keys are null."""
    page = F.when(F.col("id") % 2 == 0, F.col("id") % 100)
    left = spark.range(0, 20_000, 1, 2).select(page.alias("page"), "id")
    right = spark.range(0, 100, 1, 1).selectExpr("id AS page").union(spark.sql("SELECT NULL"))
    for how, rows in (("left", 20_000), ("inner", 10_000)):
        sizes = [row["count"] for row in partitions(join(left, right, "page", how, workers=4))]
        assert sum(sizes) == rows
        assert max(sizes) <= 1.05 * rows / 4


def test_keys_and_values_may_have_any_type(spark):
    """Keys are equal as in Spark, also -0.0 and NaN; values may be maps."""
    zeros = [0.0, -0.0, float("nan"), 1.5, None]

    def row(i):
        return {
            "d": decimal.Decimal(i % 4).scaleb(-2),
            "t": datetime.datetime(2020, 1, 1 + i % 3, tzinfo=datetime.UTC),
            "b": bytes([i % 3]),
            "f": zeros[i % 5],
            "s": {"a": i % 2, "b": [zeros[i % 5]]},
            "i": i,
        }

    kinds = pa.schema(
        {
            "d": pa.decimal128(20, 2),
            "t": pa.timestamp("us", "UTC"),
            "b": pa.binary(),
            "f": pa.float64(),
            "s": pa.struct({"a": pa.int32(), "b": pa.list_(pa.float64())}),
            "i": pa.int32(),
        }
    )
    tables = (pa.Table.from_pylist(list(map(row, ids)), kinds) for ids in (range(120), range(20)))
    with_maps = (
        from_arrow(spark, table).selectExpr("*", "map('i', array(i)) AS m") for table in tables
    )
    left, right = with_maps
    for on in (["b", "t"], ["f"], ["s", "d"]):
        # On Spark 3.5 the frames come from an RDD, and no column of theirs is a salt by default.
        joined = join(left, right, on, "left", workers=3, salt=["i"])
        assert_same(joined, left.join(right, on, "left"))


def test_column_names_are_those_of_sparks_join(spark):
    """Equal names stay two columns; a frame can join itself; names may have dots."""
    left = spark.sql("SELECT * FROM VALUES (1, 2, 3), (1, 4, 5) AS t(v, `a.b`, w)")
    right = spark.sql("SELECT * FROM VALUES (2, 1, 6) AS t(`a.b`, v, w)")
    assert_same(join(left, right, ["a.b", "v"], workers=2), left.join(right, ["a.b", "v"]))
    assert ["v", "a.b", "w", "a.b", "w"] == join(left, right, "v", workers=2).columns
    assert_same(join(left, left, "v", workers=2), left.join(left, "v"))
    joined = join(left, right, "v", workers=2).select(right["w"]).collect()
    assert [6, 6] == [row["w"] for row in joined]


PARTITIONING = (
    "shufflepartitionidpassthrough"
    if hasattr(DataFrame, "repartitionById")  # Spark 4.1
    else "hashpartitioning"
)
SHUFFLES = [f"Exchange {PARTITIONING}"] * 2
SORTED = [*SHUFFLES, "SortMergeJoin"]
SENT = ["BroadcastExchange HashedRelationBroadcastMode", "BroadcastHashJoin", *SHUFFLES]
LIMIT = "10MB"


@pytest.mark.parametrize(
    ("how", "values", "expected"),
    [
        ("inner", {ADAPTIVE: "true", BROADCAST: "-1", LATE_BROADCAST: "-1"}, SORTED),
        ("left", {ADAPTIVE: "false", BROADCAST: "-1"}, SORTED),
        ("left", {ADAPTIVE: "true", BROADCAST: LIMIT, LATE_BROADCAST: LIMIT}, SENT),
        ("inner", {ADAPTIVE: "false", BROADCAST: LIMIT}, SENT),
        pytest.param(
            "left",
            {ADAPTIVE: "true", BROADCAST: "-1", LATE_BROADCAST: LIMIT},
            SENT,
            marks=pytest.mark.classic_only(reason="Spark Connect does not show the final plan"),
        ),
    ],
    ids=["adaptive", "fixed", "adaptive, broadcast", "fixed, broadcast", "broadcast at run time"],
)
def test_each_frame_is_shuffled_once_into_equal_partitions(
    views, pages, planned, configured, how, values, expected
):
    """With every join strategy of Spark, rows stay in the partitions of the plan."""
    configured(values)
    joined = join(views, pages, "page", how, workers=WORKERS, routing=planned)
    placed = joined.select("id", "title", F.spark_partition_id().alias("p"))
    found = to_arrow(placed).to_pandas()
    routed = with_bin(views, planned, Key(("page",), 8192).bucket(), salt_of(["id"]))
    bins = to_arrow(routed).to_pandas().set_index("id")[BIN]
    assert (bins.loc[found["id"]].to_numpy() == found["p"].to_numpy()).all()
    rows = found.drop_duplicates("id")
    assert rows["p"].value_counts().max() <= 1.05 * len(rows) / WORKERS
    assert expected == operators(placed)


@pytest.mark.parametrize("adaptive", ["true", "false"], ids=["adaptive", "fixed"])
@pytest.mark.parametrize(
    ("kind", "value"), [("bigint", "k"), ("string", "k"), ("double", "if(k = 0, double('NaN'), k)")]
)
@pytest.mark.parametrize("rows", [20, ROWS], ids=["small", "equal"])
def test_a_join_adds_no_shuffle(views, spark, configured, adaptive, kind, value, rows):
    """Spark sees that both frames are partitioned for the join, for keys of any type."""
    configured({ADAPTIVE: adaptive, BROADCAST: "-1", LATE_BROADCAST: "-1"})
    key = f"cast({value} AS {kind}) AS page"
    left = views.selectExpr("page AS k", "id").selectExpr(key, "id")
    right = spark.range(0, rows, 1, 2).selectExpr("id AS k", "id AS other").selectExpr(key, "other")
    joined = join(left, right, "page", "left", workers=WORKERS, salt=["id"])
    placed = joined.select("id", F.spark_partition_id().alias("p"))
    sizes = to_arrow(placed).to_pandas()["p"].value_counts()
    assert sizes.sum() == ROWS
    assert sizes.max() <= 1.05 * ROWS / WORKERS
    assert operators(placed) == SORTED


def test_keys_are_hashed_once(views, pages, planned):
    """Spark does not compute bins a second time to check for nulls."""
    joined = join(views, pages, "page", workers=WORKERS, routing=planned)
    assert planned.splits
    filters = [line for line in explained(joined).splitlines() if "Filter" in line]
    assert filters
    assert not any("xxhash64" in line for line in filters)


def test_a_join_without_a_plan_counts_the_rows(views, pages):
    """The hot key is in a few partitions, and other keys are in one."""
    joined = join(views, pages, ["page"], "left", workers=WORKERS)
    found = to_arrow(joined.select("page", "id", F.spark_partition_id().alias("p"))).to_pandas()
    rows = found.drop_duplicates("id")
    assert len(rows) == ROWS
    assert rows["p"].value_counts().max() <= 1.05 * ROWS / WORKERS
    copies = rows.groupby("page")["p"].nunique()
    assert 3 <= copies.loc[1] <= 4
    assert (copies > 1).sum() <= WORKERS


def test_capacities_and_weights_are_followed(views, pages):
    """A worker of twice the capacity gets twice the weight."""
    heavy = views.withColumn("cost", F.when(F.col("id") % 3 == 1, 20).otherwise(1))
    joined = join(
        heavy,
        pages,
        "page",
        "left",
        workers=3,
        capacities=[2, 1, 1],
        weight="cost",
        routing=sy.Balance(sample=1.0),
    )
    found = to_arrow(joined.select("id", "cost", F.spark_partition_id().alias("p"))).to_pandas()
    costs = found.drop_duplicates("id").groupby("p")["cost"].sum()
    assert (costs / costs.sum()).tolist() == pytest.approx([0.5, 0.25, 0.25], rel=0.05)


def test_partitions_are_equal_if_the_small_frame_is_empty(views, pages, planned):
    """Spark drops the join, but keeps the shuffle."""
    joined = join(views, pages.where("page < 0"), "page", "left", workers=WORKERS, routing=planned)
    sizes = [row["count"] for row in partitions(joined)]
    assert sum(sizes) == ROWS
    assert max(sizes) <= 1.05 * ROWS / WORKERS


def test_rows_are_copied_to_the_bins_of_their_bucket_only(spark):
    """A row is copied once to each bin, even if a bin has two cells of a bucket."""
    counted = Planner(5, buckets=16).update([900, 1, 1, 400, *[20] * 12])
    twice = [[(0, WHOLE // 4), (1, WHOLE // 2), (0, WHOLE)], [(1, WHOLE)]]
    for plan in (counted, RoutingPlan.from_cells(2, twice)):
        assert plan.splits
        buckets = spark.range(plan.buckets).selectExpr("int(id) AS b")
        got = with_every_bin(buckets, plan, F.col("b")).collect()
        expected = {(b, cell.bin) for b in range(plan.buckets) for cell in plan.cells(b)}
        assert sorted(expected) == sorted((row["b"], row[BIN]) for row in got)


def test_equal_rows_of_a_hot_key_get_a_warning(spark):
    """They are joined in one partition; with a salt they are split."""
    left = spark.range(0, 4000, 1, 2).select(F.lit(7).alias("page"), "id")
    right = spark.sql("SELECT 7 AS page, 'hot' AS title")
    with pytest.warns(UserWarning, match="equal rows stay in one partition; name columns"):
        together = join(left.select("page"), right, "page", workers=4)
    assert [4000] == [row["count"] for row in partitions(together)]
    apart = join(left, right, "page", workers=4, salt=["id"])
    assert max(row["count"] for row in partitions(apart)) <= 1.1 * 1000


def both(frames, name, expression):
    """Return two frames with one more column."""
    return [frame.withColumn(name, F.expr(expression)) for frame in frames]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda b, s: join(b, s, "pgae", workers=4), r"on \(big\): there is no column 'pgae'; the"),
        (lambda b, s: join(b, s, "id", workers=4), r"on \(small\): there is no column 'id'; the"),
        (lambda b, s: join(b, s, [], workers=4), r"on \(big\) needs at least one column"),
        (
            lambda b, s: join(b, s, "page", "outter", workers=4),
            "how must be one of 'inner', 'left',",
        ),
        (lambda b, s: join(b, s, "page", workers=0), "workers must be a whole number"),
        (lambda b, s: join(b, s, "page", workers=4, salt=["x"]), "salt: there is no column 'x'"),
        (lambda b, s: join(b, s, "page", workers=4, weight="x"), "weight: there is no column 'x'"),
        (
            lambda b, s: join(b, s, "page", workers=4, routing=sy.Balance(epsilon=0)),
            "epsilon must be a number above 0",
        ),
        (
            lambda b, s: join(b, s, "page", workers=3, routing=Planner(4).plan),
            "the plan is for 4 workers, not for 3",
        ),
        (
            lambda b, s: join(b, s, "page", workers=4, routing=sy.plan(b, "id", workers=4)),
            "the plan was made for the key 'id', not for 'page'",
        ),
        (
            lambda b, s: join(b, s.selectExpr("page > 3 AS page"), "page", workers=4),
            "'page' is bigint in big and boolean in small, .* cast one column to the type of the",
        ),
        (
            lambda b, s: join(b.join(b, "page"), s, "page", workers=4),
            "must differ in more than case; rename all but one of 'id', 'id'",
        ),
        (
            lambda b, s: join(b, s.select("*", "title"), "page", workers=4),
            "must differ in more than case; rename all but one of 'title', 'title'",
        ),
        (
            lambda b, s: join(*both([b, s], "m", "map(page, page)"), "m", workers=4),
            r"on \(big\): column 'm' is map<bigint,bigint>, which Spark cannot hash",
        ),
        pytest.param(
            lambda b, s: join(*both([b, s], "t", "'a' COLLATE UTF8_LCASE"), "t", workers=4),
            "column 't' is string collate UTF8_LCASE, whose equal values may have different hashes",
            marks=pytest.mark.needs_spark("4.0", reason="collations"),
        ),
    ],
)
def test_bad_arguments_get_one_sentence(views, pages, call, sentence):
    """The error comes before any row is moved."""
    with pytest.raises(ValueError, match=sentence):
        call(views, pages)


def test_a_join_condition_is_refused(views, pages):
    """The key must be known in both frames, and a condition hides it."""
    with pytest.raises(TypeError, match=r"must be column names, got Column.*pass a dictionary"):
        join(views, pages, views["page"] == pages["page"], workers=4)


def test_streams_are_refused(spark, pages):
    """They are refused on either side, with or without a plan."""
    stream = spark.readStream.format("rate").load().selectExpr("value AS page")
    with pytest.raises(ValueError, match="big is a stream; join requires DataFrames that do not"):
        join(stream, pages, "page", workers=4, routing=Planner(4).plan)
    with pytest.raises(ValueError, match="small is a stream"):
        join(pages, stream, "page", workers=4)
