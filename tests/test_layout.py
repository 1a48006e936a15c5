"""The source tree has small modules, and each name has one meaning."""

import ast
from collections import Counter
from pathlib import Path

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
