"""A real-time aggregation whose driver is killed after the plan has changed.

`python -m tests.spark.streaming.real_time.restarts FOLDER` writes the merged totals and the truth
as JSON. It starts the query in a process of its own, `... FOLDER SERVERS IN OUT`, and kills it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from pyspark.sql import functions as F

import steelyard as sy
from steelyard.control.store import ControlStore
from steelyard.control.version import ControlVersion
from steelyard.deployment import broker
from tests.spark.streaming.real_time.on_kafka import (
    WORKERS,
    Messages,
    kafka_and_spark,
    session,
    started,
    stream_of,
    topic_of,
)
from tests.waiting import until

KILLS = 2
AGGREGATORS = (sy.Count(), sy.Sum("number"), sy.Max("number"))


def run_query(folder, servers, given, made):
    """Run the query until the process is killed, or the file `stop` exists."""
    spark = session()
    stream = stream_of(spark, servers, given)
    grouped = sy.group_stream(
        stream.withColumn("number", F.col("value").cast("long")),
        "key",
        workers=WORKERS,
        placement=sy.RealTime(),
        control=folder / "control",
    )
    partials = grouped.aggregate(*AGGREGATORS)
    (folder / "schema.ddl").write_text(partials.schema["partial"].dataType.simpleString())
    text = partials.select("key", F.to_json("partial").alias("value"))
    query = started(text, servers, made, folder / "checkpoint")
    until((folder / "stop").exists, lambda: _check(query))
    query.stop()
    spark.stop()


def _check(query):
    assert query.isActive, str(query.exception())[:2000]


def _pins(folder):
    """Return the latest batches of the query and their pins."""
    files = list((folder / "control" / "batches").glob("*"))
    return json.loads(files[0].read_text())[0] if files else []


def kill_after_a_change(folder, arguments, messages):
    """Start the query; kill it in a batch that follows another plan than the batch before.

    Then publish a version in which other workers own the virtual workers. Its next run must not
    follow this version while it repeats the batch.
    """
    with (folder / "query.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.spark.streaming.real_time.restarts", *arguments]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    store, seen = ControlStore(folder / "control"), [*_pins(folder)[-1:]]

    def changed():
        seen.extend(pin for pin in _pins(folder)[-1:] if pin not in seen)
        return len({pin for _, pin in seen}) > 1

    def check():
        assert process.poll() is None, (folder / "query.log").read_text()[-3000:]

    until(changed, check)
    time.sleep(1.5)  # a part of the batch is written
    messages.hot = f"hot {time.time()}"  # the next plan differs
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    newest = store.newest()
    swapped = newest.owners[::-1].copy()
    store.publish(ControlVersion(newest.number + 1, newest.plan, swapped))
    return [pin >> 32 for _, pin in seen]


def main(folder):
    """Kill the query several times, let it finish, and compare merged totals with the truth."""
    folder = Path(folder)
    with kafka_and_spark(folder) as (servers, spark):
        given, made = broker.create(servers, "in"), broker.create(servers, "out")
        arguments = [str(folder), servers, given, made]
        with Messages(servers, given, rate=400) as messages:
            followed = [kill_after_a_change(folder, arguments, messages) for _ in range(KILLS)]
        command = [sys.executable, "-m", "tests.spark.streaming.real_time.restarts", *arguments]
        with (folder / "query.log").open("ab") as log:
            last = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        kind = (folder / "schema.ddl").read_text()

        def totals():
            rows = topic_of(spark, servers, made)
            parsed = rows.select("key", F.from_json("value", kind).alias("partial"))
            return sorted(map(list, sy.merge_partials(parsed, *AGGREGATORS).collect()))

        def is_done():
            return sum(row[1] for row in totals()) >= messages.sent

        until(is_done, lambda: time.sleep(2))
        time.sleep(8)  # a total that is too large would show itself now
        (folder / "stop").touch()
        last.wait(120)
        truth = (
            topic_of(spark, servers, given)
            .groupBy("key")
            .agg(
                F.count("*"), F.sum(F.col("value").cast("long")), F.max(F.col("value").cast("long"))
            )
        )
        found = {
            "sent": messages.sent,
            "followed": followed,
            "totals": totals(),
            "truth": sorted(map(list, truth.collect())),
            "written": topic_of(spark, servers, made).count(),
        }
        (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        run_query(Path(sys.argv[1]), *sys.argv[2:])
