"""Functions on their way to Spark's Python processes, and what they leave for the next task."""

import gc
import importlib.util
import json
import subprocess
import sys
import zipfile
import zlib

import pyarrow as pa
import pytest

from steelyard.executor import quick_tasks
from steelyard.spark.shipping import _sources, shipped


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


ALONE = """
import importlib, json, sys
from importlib.machinery import ModuleSpec

class Only:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "steelyard":
            return None
        if name not in sources:
            raise ModuleNotFoundError(f"{name} is not shipped")
        return ModuleSpec(name, self, is_package=sources[name][0])

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(sources[module.__name__][1], module.__dict__)

sources = json.load(sys.stdin)
sys.meta_path.insert(0, Only())
for name in sources:
    if name.startswith("steelyard.executor"):
        importlib.import_module(name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_what_is_shipped_needs_nothing_that_is_not():
    """Every module for executors can be imported from the shipped ones, numpy and pyarrow."""
    texts = {
        name: (is_package, zlib.decompress(code).decode())
        for name, (is_package, code) in _sources().items()
    }
    ran = subprocess.run(
        [sys.executable, "-c", ALONE],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    loaded = set(json.loads(ran.stdout))
    assert {"steelyard", "numpy", "pyarrow"} <= loaded
    assert set() == loaded & {"pyspark", "pandas", "numba", "prometheus_client"}
