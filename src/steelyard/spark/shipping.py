"""Ship Python functions to executors together with the modules that they import.

A function from batches to batches enters; a function that Spark can run on any executor leaves.
Executors need numpy and pyarrow, not this package. The shipped function also makes the next task of
the same process cheaper.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import cloudpickle

import steelyard

Batches = Iterable[pa.RecordBatch]
Work = Callable[[Batches], Iterator[pa.RecordBatch]]
Shipped = TypeVar("Shipped")

_PACKAGES = ("executor", "aggregators", "control", "delegation", "plans")
"""Packages that are shipped, besides the modules at the root: `executor` imports no others."""


def by_value(it: Shipped) -> Callable[[], Shipped]:
    """Return a function that returns this object on any executor, with this package's code.

    Spark pickles functions of modules by name, and an executor without this package cannot import
    them. There the modules are compiled from the sources that are shipped.
    """
    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    code, sources, mine = dumps(it), _sources(), steelyard.__version__

    # Spark pickles functions that are defined inside a function by value.
    def install() -> None:
        import importlib.util
        import sys
        import zlib
        from importlib.abc import Loader, MetaPathFinder
        from importlib.machinery import ModuleSpec
        from types import ModuleType

        found = importlib.util.find_spec("steelyard")
        if found is not None and found.origin is not None:
            import steelyard

            theirs = steelyard.__version__
            if theirs != mine:
                raise RuntimeError(
                    f"the driver has steelyard {mine} and an executor has {theirs}; install the "
                    "same version on both, or none on the executors"
                )
            return

        class ShippedModules(MetaPathFinder, Loader):
            def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
                if name not in sources:
                    return None
                return ModuleSpec(name, self, is_package=sources[name][0])

            def exec_module(self, module: ModuleType) -> None:
                text = zlib.decompress(sources[module.__name__][1]).decode()
                exec(compile(text, module.__name__, "exec"), module.__dict__)  # noqa: S102

        sys.meta_path.append(ShippedModules())

    def fetch() -> Any:
        import pickle
        import sys

        if "steelyard" not in sys.modules:
            install()
        return pickle.loads(code)  # noqa: S301  # Spark does the same with every function

    return fetch


def shipped(work: Work) -> Work:
    """Return the same work for `mapInArrow`, together with this package's code."""
    fetch = by_value(work)

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from fetch()(batches)
        from steelyard.executor.quick_tasks import prepare_for_more

        prepare_for_more()

    return run


@cache
def _sources() -> dict[str, tuple[bool, bytes]]:
    """Return, by module name, whether the module is a package, and its compressed source."""
    (root,) = map(Path, steelyard.__path__)
    needed = list(root.glob("*.py"))
    for package in _PACKAGES:
        needed += (root / package).rglob("*.py")
    found = {}
    for path in needed:
        parts = path.relative_to(root.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = (is_package, zlib.compress(path.read_bytes()))
    return found
