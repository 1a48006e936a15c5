"""Functions on their way to Spark's Python processes, and what they leave for the next task."""

import gc
import importlib.util
import sys
import zipfile

import pyarrow as pa
import pytest

from steelyard.spark import quick_tasks
from steelyard.spark.shipping import shipped


@pytest.fixture
def zipped(tmp_path, monkeypatch):
    """A zip file on the path, as Spark puts some there."""
    path = str(tmp_path / "modules.zip")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("something.py", "")
    monkeypatch.syspath_prepend(path)
    return path


def test_a_task_leaves_nothing_that_makes_the_next_one_dear(zipped):
    """No zip file to be read again, and no garbage to be sought among what was imported."""

    def work(batches):
        importlib.util.find_spec("nothing_of_that_name")  # as whatever is imported in a task
        for _ in batches:
            yield pa.record_batch({"is_read": [zipped in sys.path_importer_cache]})

    quick_tasks._spare_what_was_imported.cache_clear()
    try:
        (told,) = shipped(work)([pa.record_batch({"id": [1, 2, 3]})])
        assert [True] == told["is_read"].to_pylist()
        assert zipped not in sys.path_importer_cache
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
