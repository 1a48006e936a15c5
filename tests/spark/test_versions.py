"""Every version of Spark gives the same results, or a call names the version that it needs."""

import pyspark
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.versions import partitions as by_number
from steelyard.spark.versions.interfaces import kafka_connector
from steelyard.spark.versions.partitions import to_joined_partitions, to_partitions
from steelyard.spark.versions.socket_leaks import socket_leak
from steelyard.spark.versions.supported import CONNECT, parsed, require_connect, require_streams


@pytest.mark.parametrize(
    ("version", "fixed"),
    [
        ("4.1.0", "4.1.4"),
        ("4.1.1", "4.1.4"),
        ("4.1.3", "4.1.4"),
        ("4.1.1.dbr", "4.1.4"),
        ("4.1.1-amzn-0", "4.1.4"),
        ("4.1.3-SNAPSHOT", "4.1.4"),
        ("4.2.0", "4.2.1"),
        ("4.2.0.dev1", "4.2.1"),
    ],
)
def test_the_message_of_a_leaking_version_names_the_fixed_version(version, fixed):
    """Suffixes of vendors are ignored."""
    sentence = socket_leak(version)
    assert sentence is not None
    assert sentence.startswith(f"Spark {version} leaks a socket")
    assert sentence.endswith(f"use Spark {fixed} or newer")


@pytest.mark.parametrize(
    "version",
    [
        "4.0.5",
        "4.1.4",
        "4.1.10",
        "4.1.4-SNAPSHOT",
        "4.1.4-amzn-1",
        "4.2.1",
        "4.3.0",
        "5.0.0",
        "4.1",
        "main",
    ],
)
def test_a_fixed_or_unknown_version_has_no_leak(version):
    """These are the first fixed version, later ones, and versions that cannot be compared."""
    assert socket_leak(version) is None


def test_a_call_that_needs_a_newer_version_is_refused_in_one_sentence(spark, monkeypatch):
    """The sentence names the version that is needed, the installed one, and another call."""
    stream = spark.readStream.format("rate").load()
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    with pytest.raises(ValueError, match="needs Spark") as raised:
        sy.group_stream(stream, "value", workers=2)
    assert str(raised.value) == (
        "sy.group_stream needs Spark 4.0 or newer, and this is 3.5.9; repartition micro-batches "
        "with sy.Balancer in foreachBatch, or group each of them with sy.group_by"
    )


def test_spark_connect_needs_spark_4(monkeypatch):
    """The address of a server is refused, and every frame, because older frames are different."""
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    sentence = "Spark Connect needs Spark 4.0 or newer, and this is 3.5.9"
    with pytest.raises(ValueError, match=sentence):
        sy.plan(frame, "page", workers=2)
    with pytest.raises(ValueError, match=sentence):
        require_connect("sc://localhost")


@pytest.mark.skipif(parsed(pyspark.__version__) >= CONNECT, reason="later versions are accepted")
def test_every_call_refuses_the_spark_connect_of_older_versions():
    """No call asks the server; here there is none."""
    from pyspark.sql.connect.session import SparkSession

    frame = SparkSession("sc://127.0.0.1:1").range(3)
    calls = [
        lambda: sy.plan(frame, "id", workers=2),
        lambda: sy.repartition(frame, 2, "id"),
        lambda: sy.balanced("id", workers=2)(frame),
        lambda: sy.group_by(frame, "id", workers=2),
        lambda: sy.join(frame, frame, "id", workers=2),
        lambda: sy.Balancer("id", workers=2).repartition(frame),
        lambda: sy.doctor.examine(frame, "id", workers=2),
        lambda: sy.group_stream(frame, "id", workers=2),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"^Spark Connect needs Spark 4.0 or newer, and this"):
            call()


def test_streams_through_spark_connect_need_a_later_version(monkeypatch):
    """The client of Spark 4.0 has no Python state."""
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    session = type("SparkSession", (), {"version": "4.0.5"})()
    kind = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})
    stream = kind()
    stream.sparkSession = session
    sentence = (
        "sy.group_stream through Spark Connect needs Spark 4.1 or newer, and this is 4.0.5; x"
    )
    with pytest.raises(ValueError, match="^" + sentence + "$"):
        require_streams(stream, "; x")


@pytest.mark.parametrize(
    ("version", "package"),
    [("3.5.9", "spark-sql-kafka-0-10_2.12:3.5.9"), ("4.2.1", "spark-sql-kafka-0-10_2.13:4.2.1")],
)
def test_the_connector_to_kafka_is_for_the_scala_of_spark(monkeypatch, version, package):
    """Spark cannot load a connector for another Scala."""
    monkeypatch.setattr(pyspark, "__version__", version)
    assert kafka_connector() == f"org.apache.spark:{package}"


@pytest.fixture
def without_partition_ids(monkeypatch):
    """Use no `repartitionById`, as on versions that do not have it."""
    monkeypatch.setattr(by_number, "PARTITION_IDS", (99, 0))


@pytest.mark.usefixtures("without_partition_ids")
@pytest.mark.parametrize("partitions", [1, 2, 7, 24, 333])
def test_hashes_send_rows_to_the_partitions_with_these_numbers(spark, partitions):
    """This holds for every number of partitions."""
    rows = spark.range(0, 1000, 1, 3).withColumn("p", (F.col("id") % partitions).cast("int"))
    sent = to_partitions(rows, partitions, F.col("p")).select("p", F.spark_partition_id())
    assert all(row[0] == row[1] for row in sent.collect())


@pytest.mark.usefixtures("without_partition_ids")
@pytest.mark.parametrize("kind", ["string", "long", "double", "date", "struct<id:long>"])
def test_a_join_by_hashes_keeps_rows_in_their_partitions(spark, kind):
    """The partition of a row is its number, also if the key is null."""
    key = "named_struct('id', id)" if kind.startswith("struct") else f"cast(int(id) AS {kind})"
    key = "date_add(date'2020-01-01', int(id))" if kind == "date" else key
    rows = spark.range(0, 300, 1, 3).selectExpr(
        f"if(id % 7 = 0, null, {key}) AS k", "id", "int(id % 5) AS p", "int(id % 5) AS number"
    )
    sent = to_joined_partitions(rows, 5, "p", [F.col("k")])
    placed = sent.select("k", "id", "number", F.spark_partition_id().alias("at"), "p").collect()
    assert len(placed) == 300
    assert all(row["number"] == row["at"] for row in placed)
