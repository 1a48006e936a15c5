"""The source tree has small modules, and each name has one meaning."""

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "src" / "steelyard").rglob("*.py"))

MOST_LINES = 400

ONE_ROLE_IN_EACH_PACKAGE = {"__init__", "__main__", "base", "demo", "doctor"}
"""Names that several packages may use: the base classes of a package, and the command and the page
of the demo and of the doctor."""


def test_no_module_is_long():
    """The limit applies to the package and its tests."""
    files = [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))]
    sizes = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files}
    assert {name: size for name, size in sizes.items() if size > MOST_LINES} == {}


def test_no_module_name_has_two_meanings():
    """No two modules have the same name."""
    names = Counter(file.stem for file in MODULES)
    twice = {name for name, times in names.items() if times > 1}
    assert twice <= ONE_ROLE_IN_EACH_PACKAGE


def test_no_class_name_has_two_meanings():
    """No two classes have the same name."""
    trees = [ast.parse(file.read_text("utf-8")) for file in MODULES]
    classes = [
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    assert [name for name, times in Counter(classes).items() if times > 1] == []


VERSIONS = ROOT / "src" / "steelyard" / "spark" / "versions"


def test_only_one_package_asks_for_the_version_of_spark():
    """All other modules make the same calls on every version."""
    asked = []
    for file in MODULES:
        if VERSIONS in file.parents:
            continue
        tree = ast.parse(file.read_text("utf-8"))
        lines = [ast.unparse(node) for node in ast.walk(tree) if asks_for_a_version(node, tree)]
        asked += [f"{file.relative_to(ROOT)}: {line}" for line in lines]
    assert asked == []


@pytest.mark.parametrize(
    "line",
    [
        "import pyspark\nold = pyspark.__version__ < '4'",
        "old = frame.sparkSession.version < '4'",
        "from importlib.metadata import version\nold = version('pyspark') < '4'",
        "from steelyard.spark.versions.supported import version_of",
        "from pyspark.sql import functions as F\nold = hasattr(F, 'arrow_udf')",
        "from pyspark.sql import functions as F\nold = getattr(F, 'arrow_udf', None)",
        "from pyspark.sql import DataFrame\nold = hasattr(DataFrame, 'toArrow')",
        "try:\n    from pyspark.logger import PySparkLogger\nexcept ImportError:\n    pass",
    ],
)
def test_every_way_to_ask_for_a_version_is_found(line):
    """The check above would otherwise pass without checking anything."""
    tree = ast.parse(line)
    assert any(asks_for_a_version(node, tree) for node in ast.walk(tree))


def asks_for_a_version(node, tree):
    """Whether a node reads the version of Spark, or tries what only some versions have."""
    match node:
        case ast.Attribute(attr="__version__", value=ast.Name(id="pyspark")):
            return True
        case ast.Attribute(attr="version", value=session):
            return ast.unparse(session).lower().endswith(("session", "spark", "running"))
        case ast.Call(func=ast.Name(id="version"), args=[ast.Constant(value="pyspark")]):
            return True
        case ast.ImportFrom(module="steelyard.spark.versions.supported", names=names):
            return not {"version_of", "parsed"}.isdisjoint(name.name for name in names)
        case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[ast.Name(id=name), *_]):
            return name in names_of_pyspark(tree)
        case ast.Try(body=body):
            return any(isinstance(line, ast.ImportFrom | ast.Import) for line in body) and (
                "pyspark" in ast.unparse(body)
            )
    return False


def names_of_pyspark(tree):
    """Return the names that a module imports from pyspark."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    of_pyspark = [node for node in froms if (node.module or "").startswith("pyspark")]
    return {alias.asname or alias.name for node in of_pyspark for alias in node.names}
