"""Executors that come and go on a standalone cluster: every total of a stream is exact."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.spark.session import CHECKPOINTS_ON_DISK, STATE_IN_ROCKSDB
from tests.spark import elastic_job
from tests.spark.standalone import StandaloneCluster
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.cluster, pytest.mark.elastic, pytest.mark.slow]

FILES, EACH = 6, 1000
ROOT = Path(__file__).parents[2]

SETTINGS = {
    "speculation": {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "1s",
    },
    "decommissioning": {
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
    },
    "killing": {},
    "dynamic": {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "1",
    },
}


@pytest.fixture
def folder(tmp_path):
    """Files to count, half of them of one key."""
    for name in ("in", "calls", "cluster"):
        (tmp_path / name).mkdir()
    for file in range(FILES):
        ids = range(file * EACH, (file + 1) * EACH)
        pages = ["hot" if i % 2 == 0 else str(i % 300) for i in ids]
        pq.write_table(pa.table({"page": pages, "id": list(ids)}), tmp_path / f"in/{file}.parquet")
    return tmp_path


def truth():
    """Count and sum of every key."""
    totals = {}
    for i in range(FILES * EACH):
        page = "hot" if i % 2 == 0 else str(i % 300)
        count, total = totals.get(page, (0, 0))
        totals[page] = (count + 1, total + i)
    return totals


def written(folder):
    """The newest total of every key; both numbers only grow."""
    best = {}
    for path in (folder / "out").glob("batch=*/*.parquet"):
        for page, count, total in zip(*pq.read_table(path).to_pydict().values(), strict=True):
            best[page] = max(best.get(page, (0, 0)), (count, total))
    return best


def calls(folder):
    """(micro-batch, partition, attempt, executor) of every call of the aggregator."""
    return [tuple(map(int, file.name.split("-"))) for file in (folder / "calls").iterdir()]


def finish(folder, cluster, placement, scenario, more, during=lambda: None):
    """Run the stream to its end, and do something when its second micro-batch has begun."""
    settings = {
        **CHECKPOINTS_ON_DISK,
        **STATE_IN_ROCKSDB,
        "spark.sql.shuffle.partitions": str(elastic_job.WORKERS),
        "spark.locality.wait": "0s",  # tasks do not wait for the executor with their state
        **more,
    }
    arguments = (placement, scenario, str(folder))
    job = cluster.submit(elastic_job.__file__, *arguments, settings=settings, path=ROOT / "src")

    def check():
        assert job.poll() is None, cluster.log

    until(lambda: any(call[0] >= 1 for call in calls(folder)), check)
    during()
    assert job.wait(PATIENCE) == 0, cluster.log
    assert truth() == written(folder)


@pytest.mark.parametrize("placement", ["pull", "delegated"])
def test_speculative_copies_of_tasks_change_nothing(folder, placement):
    """A straggler gets a copy, the copy finishes first, and each row counts once."""
    with StandaloneCluster(folder / "cluster", workers=3) as cluster:
        finish(folder, cluster, placement, "speculation", SETTINGS["speculation"])
    attempts = {}
    for batch, partition, attempt, _ in calls(folder):
        attempts.setdefault((batch, partition), set()).add(attempt)
    assert any(len(tried) > 1 for key, tried in attempts.items() if key[0] == 2)


@pytest.mark.parametrize("placement", ["pull", "delegated"])
@pytest.mark.parametrize("how", ["decommissioning", "killing"])
def test_a_worker_that_leaves_and_one_that_joins_change_nothing(folder, placement, how):
    """The executors of the other workers take over the tasks and the state."""
    with StandaloneCluster(
        folder / "cluster", workers=2, settings=SETTINGS["decommissioning"]
    ) as cluster:

        def exchange():
            if how == "decommissioning":
                cluster.decommission_worker(0)
            else:
                cluster.kill_worker(0)
            cluster.add_worker()

        finish(folder, cluster, placement, "exchange", SETTINGS[how], exchange)
    first = {executor for batch, _, _, executor in calls(folder) if batch == 0}
    last = {executor for batch, _, _, executor in calls(folder) if batch > 2}
    assert last - first, "the new executor did not work"


@pytest.mark.parametrize("placement", ["pull", "delegated"])
def test_executors_that_are_released_between_micro_batches_change_nothing(folder, placement):
    """Dynamic allocation releases idle executors and asks for new ones."""
    with StandaloneCluster(folder / "cluster", workers=2) as cluster:
        finish(folder, cluster, placement, "dynamic", SETTINGS["dynamic"])
    assert len({executor for *_, executor in calls(folder)}) > 2, "no executor was released"
