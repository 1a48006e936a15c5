"""Only columns that are deterministic across task retries distribute the rows of a hot key."""

import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.versions.arrow import to_arrow

ROWS, WORKERS = 2000, 4


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    """Files in which half of the rows have one key, and every id occurs twice."""
    path = str(tmp_path_factory.mktemp("salts") / "rows")
    both = spark.range(0, 2 * ROWS, 1, 2).selectExpr(f"id % {ROWS} AS id", f"id div {ROWS} AS copy")
    pages = both.selectExpr(
        "if(id % 2 = 0, 'hot', string(id % 500)) AS page", "*", "id / 7 AS part"
    )
    pages.write.parquet(path)
    return spark.read.parquet(path)


def one_of_each(files):
    """One row for each page and id; these two columns are deterministic, and no others."""
    return files.groupBy("page", "id").agg(
        F.first("copy").alias("copy"), F.sum("part").alias("part")
    )


def unknown(files):
    """Rows of which all columns are doubtful."""
    one = files.where("copy = 0").repartition(2)
    return one.mapInArrow(lambda batches: batches, files.schema)


def partitions(frame):
    """The partitions of the hot key, and the ids of all rows."""
    rows = to_arrow(frame.select("page", "id", F.spark_partition_id())).to_pylist()
    return {list(r.values())[2] for r in rows if r["page"] == "hot"}, sorted(r["id"] for r in rows)


def tagged(table):
    """The page and the id of each row."""
    return table.select(["page", "id"])


def ours(warned):
    """The warnings except those about sockets, which Spark leaves to the garbage collector."""
    return [warning for warning in warned if warning.category is UserWarning]


OPERATIONS = {
    "repartition": lambda f, **k: sy.repartition(f, WORKERS, "page", **k),
    "planned": lambda f, **k: sy.repartition(
        f, WORKERS, "page", routing=sy.plan(f, "page", workers=WORKERS), **k
    ),
    "join": lambda f, **k: sy.join(f, f.select("page").distinct(), "page", workers=WORKERS, **k),
    "balancer": lambda f, **k: sy.Balancer("page", workers=WORKERS, **k).repartition(f),
    "map_arrow": lambda f, **k: sy.group_by(f, "page", workers=WORKERS, **k).map_arrow(
        tagged, "page string, id long"
    ),
    "map_arrow by a plan": lambda f, **k: sy.group_by(
        f, "page", workers=WORKERS, routing=sy.plan(f, "page", workers=WORKERS), **k
    ).map_arrow(tagged, "page string, id long"),
    "whole_light_keys": lambda f, **k: sy.group_by(
        f, "page", workers=WORKERS, whole_light_keys=True, **k
    ).map_arrow(tagged, "page string, id long"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_deterministic_columns_split_hot_keys(files, operation):
    """Other columns may be doubtful; there is no warning."""
    where, ids = partitions(OPERATIONS[operation](one_of_each(files)))
    assert len(where) >= 2
    assert ids == list(range(ROWS))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_hot_keys_stay_whole_without_deterministic_columns(files, operation):
    """A warning names the reason and the remedy, which works: the user's salt is accepted."""
    frame = unknown(files)
    why = r"\(id comes from the step (Python)?MapInArrow\): name deterministic columns with `salt`"
    with pytest.warns(UserWarning, match=why) as warned:
        where, ids = partitions(OPERATIONS[operation](frame))
    assert len(ours(warned)) == 1
    assert len(where) == 1
    assert ids == list(range(ROWS))
    where, ids = partitions(OPERATIONS[operation](frame, salt=["id"]))
    assert len(where) >= 2
    assert ids == list(range(ROWS))


def test_the_warning_points_at_the_call(files):
    """The warning does not name a line of this package."""
    for operation in ("repartition", "planned", "join", "balancer"):
        with pytest.warns(UserWarning, match="stay together") as warned:
            OPERATIONS[operation](unknown(files))
        assert [w.filename for w in ours(warned)] == [__file__], operation


@pytest.mark.parametrize(
    ("salt", "sentence"),
    [
        ("copy", r"salt: column 'copy' comes from first\(\); its value may differ after a task"),
        ("part", r"salt: column 'part' comes from sum\(\) of floating-point numbers; its value"),
    ],
)
def test_a_salt_that_depends_on_the_order_of_rows_is_refused(files, salt, sentence):
    """The error names the column, its origin and the remedy."""
    frame = one_of_each(files)
    with pytest.raises(ValueError, match=sentence):
        sy.repartition(frame, WORKERS, "page", salt=["id", salt])
    with pytest.raises(ValueError, match="name other columns, or write the frame to files first"):
        sy.group_by(frame, "page", workers=WORKERS, salt=[salt])
    with pytest.raises(ValueError, match=sentence):
        sy.join(frame, frame, "page", workers=WORKERS, salt=[salt])
    with pytest.raises(ValueError, match=sentence):
        sy.Balancer("page", workers=WORKERS, salt=[salt]).repartition(frame)


def test_a_random_key_is_refused(files):
    """After a shuffle, a retry computes another key; on a scan, it computes the same key."""
    random_key = F.concat("page", (F.rand(1) * 10).cast("int").cast("string"))
    for make in (
        lambda f: sy.repartition(f, WORKERS, "salted"),
        lambda f: sy.group_by(f, "salted", workers=WORKERS),
        lambda f: sy.join(f, f, "salted", workers=WORKERS),
    ):
        with pytest.raises(ValueError, match=r"key: column 'salted' comes from rand\(\) after a"):
            make(files.repartition(2).withColumn("salted", random_key))
    scanned = sy.repartition(files.withColumn("salted", random_key), WORKERS, "salted")
    assert scanned.count() == 2 * ROWS


def test_rows_are_planned_during_the_read_only_by_deterministic_columns(files):
    """With a doubtful weight or key, a task retry would make another plan."""
    encrypted = files.withColumn("secret", F.expr("hex(aes_encrypt(page, '0123456789abcdef'))"))
    assert sy.group_by(encrypted, "page", workers=2).in_order
    assert not sy.group_by(encrypted, "secret", workers=2).in_order
    clock = "cast(java_method('java.lang.System', 'nanoTime') AS long) % 3 AS weight"
    weighed = files.selectExpr("*", clock)
    assert not sy.group_by(weighed, "page", workers=2, weight="weight").in_order
    assert not sy.group_by(weighed.where("weight = 1"), "page", workers=2).in_order


def streamed(spark, files, tmp_path):
    """A stream of the rows with Kafka's columns."""
    rows = files.selectExpr(
        "page",
        "id",
        "'t' AS topic",
        "0 AS partition",
        "id AS offset",
        "current_timestamp() AS timestamp",
    )
    pq.write_table(to_arrow(rows), tmp_path / "rows.parquet")
    schema = "page string, id long, topic string, partition int, offset long, timestamp timestamp"
    return spark.readStream.schema(schema).parquet(str(tmp_path))


@pytest.mark.needs_spark("4.0", reason="sy.group_stream")
def test_streams(spark, files, tmp_path):
    """Kafka's partition and offset are the salt, unless `dropDuplicates` makes them doubtful."""
    stream = streamed(spark, files, tmp_path)
    plan = sy.plan(files, "page", workers=WORKERS)

    def salts(frame, **more):
        return sy.group_stream(frame, "page", workers=WORKERS, routing=plan, **more)._source.salts

    assert ("partition", "offset") == salts(stream)
    assert ("partition", "offset") == salts(stream.repartition(2))
    assert ("id",) == salts(stream.dropDuplicates(["id"]))
    own = stream.select("page", "id")
    assert sy.group_stream(own, "page", workers=WORKERS)._source.salts is None  # by position
    assert ("id",) == salts(own)
    with pytest.raises(ValueError, match="salt: column 'offset' comes from dropDuplicates"):
        salts(stream.dropDuplicates(["id"]), salt=["offset"])
    mapped = own.mapInArrow(lambda batches: batches, own.schema)
    with pytest.warns(UserWarning, match="rows of a hot key stay together"):
        assert () == salts(mapped)
    assert ("id",) == salts(mapped, salt=["id"])


@pytest.mark.classic_only(reason="Spark Connect hides the steps of a micro-batch")
@pytest.mark.parametrize("steps", ["duplicates", "python"])
def test_micro_batches(spark, files, tmp_path, steps):
    """In `foreachBatch`, the plan of the running query decides which columns are deterministic."""
    (tmp_path / "in").mkdir()
    stream = streamed(spark, files, tmp_path / "in").select("page", "id", "timestamp")
    if steps == "duplicates":
        stream = stream.dropDuplicates(["id"])
    else:
        stream = stream.dropDuplicates(["id"]).mapInArrow(lambda batches: batches, stream.schema)
    balancer, out = sy.Balancer("page", workers=WORKERS), str(tmp_path / "out")

    def write(batch, number):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as errors they would end the query
            balanced = balancer.repartition(batch)
        balanced.select("page", "id", F.spark_partition_id().alias("p")).write.parquet(out)

    query = stream.writeStream.foreachBatch(write).trigger(availableNow=True).start()
    query.awaitTermination()
    written = pq.read_table(out).to_pylist()
    assert sorted(row["id"] for row in written) == list(range(ROWS))
    where = {row["p"] for row in written if row["page"] == "hot"}
    assert len(where) == 1 if steps == "python" else len(where) >= 2


def test_a_constant_salt_keeps_a_bucket_whole():
    """A stream without deterministic columns gives all messages of a bucket the same salt."""
    plan = sy.Planner(4, buckets=8).update([60, 1, 1, 1, 1, 1, 1, 1])
    buckets = pa.array([0] * 100, pa.int32()).to_numpy()
    assert len(set(plan.route(buckets, pa.array([0] * 100, pa.int64()).to_numpy()))) == 1
