"""Batch jobs on a standalone cluster that loses an executor and gets another: rows are exact."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import elastic_batch_job
from tests.spark.standalone import StandaloneCluster
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.cluster, pytest.mark.elastic, pytest.mark.slow]

FILES, EACH = 6, 1000
ROOT = Path(__file__).parents[2]

SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
    "spark.locality.wait": "0s",
    "spark.sql.shuffle.partitions": str(elastic_batch_job.WORKERS),
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@pytest.fixture
def folder(tmp_path):
    """Files with rows, half of them of one key."""
    for name in ("in", "tasks", "cluster"):
        (tmp_path / name).mkdir()
    pages, ids = (list(column) for column in zip(*truth(), strict=True))
    for first in range(0, FILES * EACH, EACH):
        part = slice(first, first + EACH)
        table = pa.table({"page": pages[part], "id": ids[part]})
        pq.write_table(table, tmp_path / f"in/{first}.parquet")
    return tmp_path


def truth():
    """Return all rows: page and id."""
    return [("hot" if i % 2 == 0 else str(i % 300), i) for i in range(FILES * EACH)]


def sums():
    """Return page, count and sum."""
    totals = {}
    for page, i in truth():
        count, total = totals.get(page, (0, 0))
        totals[page] = (count + 1, total + i)
    return [(page, *total) for page, total in totals.items()]


def written(folder, operation):
    """Return the rows of an operation, sorted."""
    columns = pq.read_table(folder / "out" / operation).to_pydict().values()
    return sorted(zip(*columns, strict=True))


def tasks(folder, operation):
    """(partition, attempt, executor) of every task of an operation."""
    found = (folder / "tasks").glob(f"{operation}-*")
    return [tuple(map(int, file.name.split("-")[1:])) for file in found]


@pytest.mark.parametrize("how", ["decommissioning", "killing"])
def test_speculation_and_an_exchanged_executor_change_no_row(folder, how):
    """A straggler gets a copy; later an executor leaves while its task runs, and another joins."""
    with StandaloneCluster(folder / "cluster", workers=3, settings=SETTINGS) as cluster:
        job = cluster.submit(
            elastic_batch_job.__file__, folder, settings=SETTINGS, path=ROOT / "src"
        )

        def check():
            assert job.poll() is None, cluster.log

        until(lambda: len({task[2] for task in tasks(folder, "exchanged")}) == 3, check)
        if how == "decommissioning":
            cluster.decommission_worker(0)
        else:
            cluster.kill_worker(0)
        cluster.add_worker()
        (folder / "exchanged").touch()
        assert job.wait(PATIENCE) == 0, cluster.log

    for operation in ("copied", "exchanged", "repartition"):
        assert written(folder, operation) == sorted(truth()), operation
    assert written(folder, "aggregate") == sorted(sums())
    about = sorted((page, i, f"about {page}") for page, i in truth())
    assert written(folder, "join") == about

    copied = [partition for partition, *_ in tasks(folder, "copied")]
    assert len(copied) > len(set(copied)), "no task was copied"
    first = {executor for *_, executor in tasks(folder, "copied")}
    last = {executor for *_, executor in tasks(folder, "join")}
    assert last - first, "the new executor did not work"
