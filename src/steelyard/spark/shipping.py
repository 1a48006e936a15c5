"""Ship Python functions to executors together with the modules that they import.

A function from batches to batches enters; a function that Spark can run on any executor leaves.
Executors need numpy and pyarrow, not this package. The shipped function also makes the next task of
the same process cheaper.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
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
    """Return, by module name, whether the module is a package, and its compressed source.

    The package may be in a folder or in a zip file, as with `spark-submit --py-files`.
    """
    root = files(steelyard)
    found = _modules(root, steelyard.__name__)
    for package in _PACKAGES:
        found |= _modules(root / package, f"{steelyard.__name__}.{package}")
    return found


def _modules(folder: Traversable, package: str) -> dict[str, tuple[bool, bytes]]:
    """Return the modules of a package, without those of the packages in it."""
    found = {}
    for file in folder.iterdir():
        if file.name.endswith(".py"):
            is_package = file.name == "__init__.py"
            name = package if is_package else f"{package}.{file.name.removesuffix('.py')}"
            found[name] = (is_package, zlib.compress(file.read_bytes()))
    return found
