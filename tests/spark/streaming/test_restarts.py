"""Streams that stop, lose their control files or use the same control path."""

import itertools
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import steelyard as sy
from steelyard.control.history import Slot
from steelyard.control.store import ControlStore
from steelyard.spark.streaming import listening
from tests.spark.streaming.running import (
    EACH,
    FILES,
    PLACEMENTS,
    SCHEMA,
    calm_shares,
    group,
    history_of,
    last_of,
    run_into,
    stream_of,
    table,
    truth,
)
from tests.waiting import until

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]


def test_a_restart_may_change_buckets_but_not_delegated_workers(spark, rows, files, tmp_path):
    """Results do not depend on the number of buckets; state depends on the number of workers."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))
    written = []
    for part, buckets in zip(parts, (8192, 4096, 8192, 512), strict=True):
        shutil.copy(part, tmp_path / "in" / part.name)
        grouped = group(
            stream_of(spark, tmp_path / "in"), tmp_path, routing=sy.Balance(buckets=buckets)
        )
        found = grouped.aggregate(sy.Count(), sy.CollectSet("id"))
        written += run_into(tmp_path / "out", found, tmp_path / "checkpoint")
    counts = {key: count for key, (count, _) in truth(rows).items()}
    assert counts == {key: row[0] for key, row in last_of(written).items()}
    delegated = group(stream_of(spark, files), tmp_path / "b", "delegated")
    table(delegated.aggregate(sy.Count()), tmp_path / "other checkpoint")
    history_of(delegated, FILES)
    with pytest.raises(ValueError, match="is of 4 delegated workers, and their number is fixed"):
        group(stream_of(spark, files), tmp_path / "b", "delegated", workers=3)


@pytest.mark.faults
def test_restarts_are_exact_with_and_without_control_files(spark, rows, files, tmp_path):
    """One restart resumes from the control path; before the next one the path is deleted."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))
    written = []
    for number, part in enumerate(parts):
        shutil.copy(part, tmp_path / "in" / part.name)
        if number == 2:
            # After the driver has removed this file, no process writes to the path.
            until(lambda: not (tmp_path / "control" / "owner").exists())
            shutil.rmtree(tmp_path / "control")
        grouped = group(stream_of(spark, tmp_path / "in"), tmp_path, "delegated")
        learned = grouped.controller.version.plan is not None
        assert learned == (number in (1, 3))
        counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
        written += run_into(tmp_path / "out", counts, tmp_path / "checkpoint")
        history_of(grouped, 1)
    assert truth(rows) == last_of(written)


@pytest.mark.faults
@PLACEMENTS
def test_a_query_is_exact_while_control_files_are_deleted(spark, rows, files, tmp_path, placement):
    """All files are deleted repeatedly: a micro-batch is exact, or fails with a clear error."""
    is_over, is_defined = threading.Event(), threading.Lock()
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))

    def delete():
        while not is_over.wait(0.2):
            with is_defined:
                shutil.rmtree(tmp_path / "control", ignore_errors=True)

    def run():
        with is_defined:
            grouped = group(stream_of(spark, tmp_path / "in"), tmp_path, placement)
        counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
        return run_into(tmp_path / "out", counts, tmp_path / "checkpoint")

    shutil.copy(parts[0], tmp_path / "in")
    run()  # the first micro-batch must see the folder that the driver uses
    for part in parts[1:]:
        shutil.copy(part, tmp_path / "in")
    deleting = threading.Thread(target=delete)
    deleting.start()
    try:
        while not (tmp_path / "checkpoint" / "commits" / str(FILES - 1)).exists():
            with expected_loss(tmp_path / "control"):
                run()
    finally:
        is_over.set()
        deleting.join()
    folders = (tmp_path / "out").glob("*")
    written = [row for folder in folders for row in pq.read_table(folder).to_pylist()]
    assert truth(rows) == last_of([tuple(row.values()) for row in written])


@contextmanager
def expected_loss(control):
    """Accept a failure only if a task did not find its control version."""
    try:
        yield
    except StreamingQueryException as error:
        assert f"follows, is not in the folder {control} on the host" in str(error)  # noqa: PT017


@PLACEMENTS
def test_a_control_path_on_a_store_that_cannot_link(rows, stream, remote, tmp_path, placement):
    """Sources follow the versions on an object store, and a restart resumes from them."""
    grouped = group(stream, tmp_path, placement, control=remote)
    written = table(grouped.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "checkpoint")
    assert truth(rows) == last_of(written)
    slots = history_of(grouped, FILES)
    assert [2, FILES] == [slots[0].version, len(slots)]
    assert slots == [Slot.from_json(line) for line in ControlStore(remote).history()]
    again = group(stream, tmp_path, placement, control=remote)
    assert again.controller.version.matches(
        grouped.controller.version.plan, grouped.controller.version.owners
    )
    assert max(calm_shares(slots)) < 0.4, "the hot key with half of the messages is split"


@pytest.mark.faults
def test_a_clock_that_goes_backwards_changes_nothing(rows, stream, tmp_path, monkeypatch):
    """The clock of the driver loses an hour in each micro-batch; totals are exact."""
    hours = itertools.count()
    backwards = SimpleNamespace(time=lambda: 1e9 - 3600 * next(hours))
    monkeypatch.setattr(listening, "time", backwards)
    grouped = group(stream, tmp_path, "delegated")
    written = table(grouped.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "checkpoint")
    assert truth(rows) == last_of(written)
    slots = history_of(grouped, FILES)
    assert list(range(1, FILES + 1)) == [slot.slot for slot in slots]
    assert all(later.time < earlier.time for earlier, later in itertools.pairwise(slots))
    assert grouped.controller.version.plan is not None


def test_two_queries_on_one_control_path_are_refused(stream, rows, tmp_path):
    """The second query fails with one sentence; the first query continues."""
    owner = tmp_path / "control" / "owner"
    first = group(stream, tmp_path).aggregate(sy.Count(), sy.Sum("id"))
    writer = first.writeStream.outputMode("update").format("memory").queryName("first_of_two")
    running = writer.option("checkpointLocation", str(tmp_path / "first")).start()
    try:
        until(owner.exists)
        second = group(stream, tmp_path).aggregate(sy.Count())
        sentence = f"is in use by the query {running.id}; give each query a path"
        with pytest.raises(Exception, match=sentence):
            table(second, tmp_path / "second")
        running.processAllAvailable()
        assert running.isActive
    finally:
        running.stop()
    written = [tuple(row) for row in first.sparkSession.table("first_of_two").collect()]
    assert truth(rows) == last_of(written)
    until(lambda: not owner.exists())  # a query frees its path when it ends


@pytest.mark.faults
@PLACEMENTS
def test_a_query_continues_after_a_failing_function_is_fixed(stream, tmp_path, placement):
    """The error names worker, micro-batch and keys; a restart with a fixed function is exact."""

    def fragile(rows: pa.Table) -> pa.Table:
        if 4711 in rows["id"].to_pylist():
            raise ValueError("cannot read this")
        return rows.select(["id"])

    failing = group(stream, tmp_path, placement).map_arrow(fragile, "id long")
    sentence = (
        r"worker \d failed in micro-batch \d on \d+ rows of \d+ buckets and \d+ keys \(.*; .*\): "
        "ValueError: cannot read this"
    )
    with pytest.raises(Exception, match=sentence):
        run_into(tmp_path / "out", failing, tmp_path / "checkpoint", "append")
    fixed = group(stream, tmp_path, placement).map_arrow(lambda t: t.select(["id"]), "id long")
    run_into(tmp_path / "out", fixed, tmp_path / "checkpoint", "append")
    folders = (tmp_path / "out").glob("*")
    ids = [i for folder in folders for i in pq.read_table(folder)["id"].to_pylist()]
    assert list(range(FILES * EACH)) == sorted(ids)


def test_a_damaged_checkpoint_is_refused(spark, files, tmp_path):
    """On a local disk Hadoop's checksums detect the damage; Spark's own are switched off."""
    counts = group(stream_of(spark, files), tmp_path).aggregate(sy.Count())
    run_into(tmp_path / "out", counts, tmp_path / "checkpoint")
    last = tmp_path / "checkpoint" / "offsets" / str(FILES - 1)
    last.write_bytes(last.read_bytes().replace(b'"logOffset":3', b'"logOffset":2'))
    again = group(stream_of(spark, files), tmp_path).aggregate(sy.Count())
    with pytest.raises(Exception, match="Checksum error"):
        run_into(tmp_path / "out", again, tmp_path / "checkpoint")


def test_state_of_another_number_of_workers_is_refused(spark, files, tmp_path):
    """The state itself has the number of workers, for restarts with a new control path."""
    shutil.copytree(files, tmp_path / "in")

    def run(workers, control):
        before = spark.conf.get("spark.sql.shuffle.partitions")
        spark.conf.set("spark.sql.shuffle.partitions", str(workers))
        try:
            frame = stream_of(spark, tmp_path / "in")
            settings = {"workers": workers, "control": tmp_path / control}
            grouped = group(frame, tmp_path, sy.Delegated(period=8), **settings)
            run_into(tmp_path / "out", grouped.aggregate(sy.Count()), tmp_path / "checkpoint")
        finally:
            spark.conf.set("spark.sql.shuffle.partitions", before)

    run(3, "first")
    more = spark.createDataFrame([("hot", 1, None)], SCHEMA).coalesce(1)
    more.write.mode("append").parquet(str(tmp_path / "in"))
    with pytest.raises(Exception, match="has the state of 3 workers, and now there are 2"):
        run(2, "second")
