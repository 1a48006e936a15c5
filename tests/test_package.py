"""The package as a whole: its public names, its imports and its files."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard

ROOT = Path(__file__).parents[1]


def fresh(code):
    """Run code in a new interpreter; return its output."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout.strip()


def test_every_public_name_can_be_imported():
    """`dir` lists exactly the public names."""
    for name in steelyard.__all__:
        assert getattr(steelyard, name) is not None
    assert sorted(steelyard.__all__) == dir(steelyard)
    with pytest.raises(AttributeError, match="module 'steelyard' has no attribute 'nonsense'"):
        _ = steelyard.nonsense
    with pytest.raises(AttributeError, match="aggregators' has no attribute 'nonsense'"):
        _ = steelyard.aggregators.nonsense


def test_every_public_name_is_declared_for_type_checkers():
    """Names are imported at their first use, so type checkers need a declaration."""
    tree = ast.parse((ROOT / "src/steelyard/__init__.py").read_text())
    (declared,) = (
        node.body
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imports = [node for node in declared if isinstance(node, ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    assert names == set(steelyard.__all__) - {"__version__"}


def test_the_import_is_fast():
    """`import steelyard` loads neither Spark, nor a plotting library, nor the compiler."""
    heavy = "pyspark numba numpy pyarrow matplotlib bokeh datasketches pandas"
    code = f"import sys, steelyard; print([m for m in {heavy.split()} if m in sys.modules])"
    assert fresh(code) == "[]"


def test_executors_need_numpy_and_pyarrow_only():
    """Plans, assignments, delegation and exact aggregators need no numba and no datasketches."""
    code = """
import sys
sys.modules.update(numba=None, llvmlite=None, datasketches=None, typer=None, rich=None)
import numpy as np, pyarrow as pa, steelyard
plan = steelyard.Planner(4).update(np.ones(8192))
plan.route(np.arange(8192), np.zeros(8192, np.uint64))
steelyard.SteadyRules().source(steelyard.Assignment.equal(2, 10))
rows = pa.record_batch({"k": ["a"], "v": [1]})
agg = steelyard.Aggregation([steelyard.Sum("v"), steelyard.TopK("v")], ["k"], rows.schema)
print(agg.result(agg.add(agg.create(), rows)).num_rows)
"""
    assert fresh(code) == "1"


def test_the_lock_file_holds_names_and_versions_only():
    """requirements.lock names no address of a package index."""
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+-]+", line), line


def test_the_changelog_describes_this_version():
    assert f"## [{steelyard.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
