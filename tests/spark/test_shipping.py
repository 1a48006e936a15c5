"""Functions run on executors without this package, and make the next task cheaper."""

import ast
import gc
import importlib.util
import json
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

import steelyard
from steelyard.executor import quick_tasks
from steelyard.spark.shipping import _sources, by_value, shipped


@pytest.fixture
def zipped(tmp_path, monkeypatch):
    """Put a zip file on the import path, as Spark does."""
    path = str(tmp_path / "modules.zip")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("something.py", "")
    monkeypatch.syspath_prepend(path)
    return path


def test_a_task_makes_the_next_one_cheaper(zipped):
    """Zip files are not read again, and imported modules are frozen for garbage collection."""

    def work(batches):
        importlib.util.find_spec("nothing_of_that_name")  # an import inside a task
        for _ in batches:
            yield pa.record_batch({"is_read": [zipped in sys.path_importer_cache]})

    quick_tasks._freeze_imported_objects.cache_clear()
    try:
        (result,) = shipped(work)([pa.record_batch({"id": [1, 2, 3]})])
        assert [True] == result["is_read"].to_pylist()
        assert zipped not in sys.path_importer_cache
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def arrived(function):
    """Return a function as Spark's Python gets it."""
    return cloudpickle.loads(cloudpickle.dumps(function))


def test_missing_packages_are_named_when_a_function_arrives():
    """Spark imports packages after it has unpickled the function, so the check is there."""
    assert arrived(by_value("work", ["numpy", "google.protobuf.descriptor"]))() == "work"
    with pytest.raises(RuntimeError, match="cannot import one, two and three, which this job need"):
        arrived(by_value("work", ["numpy", "one", "two.part", "three"]))


class NeedsAModule:
    """Work whose module an executor lacks."""

    def __reduce__(self):
        return importlib.import_module, ("module_of_a_user",)


class HasADefect:
    """Work whose module has a defect."""

    def __reduce__(self):
        return exec, ("from json import nothing_of_that_name",)


def test_a_missing_module_of_the_work_is_named():
    """A module of the user can be installed, or sent with the job."""
    sentence = "cannot import module_of_a_user, which this job needs: install it on every executor"
    with pytest.raises(RuntimeError, match=sentence) as raised:
        arrived(by_value(NeedsAModule()))()
    assert "or send it with spark.submit.pyFiles" in str(raised.value)
    assert "pip" not in str(raised.value)


def test_other_errors_of_imports_are_not_changed():
    """An import that fails for another reason keeps its error."""
    with pytest.raises(ImportError, match="cannot import name 'nothing_of_that_name'"):
        arrived(by_value(HasADefect()))()


IMPORT_ALL = """
import importlib, json, sys

folders, names = json.load(sys.stdin)
sys.path[:0] = folders
missing = {}
for name in names:
    try:
        importlib.import_module(name)
    except ImportError as error:
        missing[name] = (error.__cause__ or error).name
print(json.dumps([missing, sorted({name.partition(".")[0] for name in sys.modules})]))
"""

OPTIONAL = {
    "steelyard._compiled": "numba",
    "steelyard._xxhash64": "llvmlite",
    "steelyard.aggregators.sketches": "datasketches",
    "steelyard.comparison": "steelyard.schemes",
    "steelyard.control.prometheus": "prometheus_client",
}
"""Shipped modules that need another package; only the driver or a sketch imports them."""


def ship_to(folder, sources):
    """Write the shipped modules, and link only numpy and pyarrow; return the two folders."""
    for name, (is_package, code) in sources.items():
        path = folder / "shipped" / name.replace(".", "/")
        path = path / "__init__.py" if is_package else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.decompress(code))
    installed = folder / "installed"
    installed.mkdir()
    for package in (np, pa):
        home = Path(package.__file__).parent
        for found in home.parent.glob(f"{home.name}*"):
            (installed / found.name).symlink_to(found)
    return [str(folder / "shipped"), str(installed)]


def import_all(folder, sources):
    """Import every shipped module in a process that has only Python's own modules besides.

    Returns the missing package of each module that cannot be imported, and the packages in use.
    """
    given = json.dumps([ship_to(folder, sources), list(sources)])
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT_ALL],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


SOURCES_IN_A_ZIP = """
import sys

sys.path.insert(0, sys.argv[1])
import steelyard
from steelyard.spark.shipping import _sources

assert steelyard.__file__.startswith(sys.argv[1]), steelyard.__file__
print({name: (is_package, len(code)) for name, (is_package, code) in _sources().items()})
"""


def test_modules_are_shipped_from_a_zip_file(tmp_path):
    """`spark-submit --py-files` puts a wheel, which is a zip file, on the path of the driver."""
    path, root = tmp_path / "steelyard.whl", Path(steelyard.__file__).parent
    with zipfile.ZipFile(path, "w") as file:
        for module in root.rglob("*.py"):
            file.write(module, module.relative_to(root.parent))
    command = [sys.executable, "-c", SOURCES_IN_A_ZIP, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    expected = {name: (package, len(code)) for name, (package, code) in _sources().items()}
    assert expected == ast.literal_eval(ran.stdout)


def test_shipped_modules_need_only_shipped_modules(tmp_path):
    """Every shipped module can be imported with only the shipped ones, numpy and pyarrow."""
    missing, loaded = import_all(tmp_path, _sources())
    assert OPTIONAL == missing
    assert {"steelyard", "numpy", "pyarrow"} <= set(loaded)
    assert set() == set(loaded) & {"pyspark", "pandas", "numba", "prometheus_client"}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from pyspark import TaskContext", "pyspark"),
        ("import pandas", "pandas"),
        ("from steelyard.schemes import Scheme", "steelyard.schemes"),
        ("import steelyard.spark.columns", "steelyard.spark"),
    ],
)
def test_a_shipped_module_with_another_import_is_found(tmp_path, line, name):
    """The check fails if a shipped module imports a package that executors do not have."""
    sources = dict(_sources())
    is_package, code = sources["steelyard.executor.worker"]
    code = zlib.compress(zlib.decompress(code) + f"\n{line}\n".encode())
    sources["steelyard.executor.worker"] = is_package, code
    missing, _ = import_all(tmp_path, sources)
    assert name == missing["steelyard.executor.worker"]


@pytest.mark.parametrize("package", ["executor", "aggregators", "control", "delegation", "plans"])
def test_whole_packages_are_shipped(package):
    """Every module of a shipped package, and of the packages in it, is shipped."""
    (root,) = map(Path, steelyard.__path__)
    paths = (path.relative_to(root.parent) for path in (root / package).rglob("*.py"))
    modules = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths}
    assert modules == {
        name for name in _sources() if f"{name}.".startswith(f"steelyard.{package}.")
    }
