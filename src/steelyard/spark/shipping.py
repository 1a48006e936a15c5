"""Ship Python functions to executors together with the modules that they import.

A function from batches to batches enters; a function that Spark can run on any executor leaves.
Executors need the packages that docs/installing.md lists, not this package. If one is missing, the
task fails with one sentence. The shipped function also makes the next task of the same process
cheaper.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark import cloudpickle

import steelyard
from steelyard.spark.executor_packages import ALWAYS, describing, finding

Batches = Iterable[pa.RecordBatch]
Work = Callable[[Batches], Iterator[pa.RecordBatch]]
Shipped = TypeVar("Shipped")

_PACKAGES = ("executor", "aggregators", "control", "delegation", "plans")
"""Packages that are shipped, besides the modules at the root: `executor` imports no others."""


class OnExecutors(Generic[Shipped]):
    """A function that checks for packages when it arrives on an executor: before Spark uses them.

    Args:
        function: The function, which Spark pickles by value.
        modules: The modules that the executor must be able to import.
    """

    def __init__(self, function: Callable[..., Shipped], modules: Sequence[str]) -> None:
        self.__name__ = function.__name__  # Spark shows it in query plans
        self._function, self._modules = function, modules

    def __call__(self, *arguments: Any) -> Shipped:
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        dumps: Callable[[Any], bytes] = cloudpickle.dumps
        find, describe = finding(self._modules), describing()

        def arrive(code: bytes) -> Any:
            import pickle

            lacking = find()
            if lacking:
                raise RuntimeError(describe(lacking))
            return pickle.loads(code)  # noqa: S301  # Spark does the same with every function

        return arrive, (dumps(self._function),)


def by_value(it: Shipped, modules: Sequence[str] = ALWAYS) -> OnExecutors[Shipped]:
    """Return a function that returns this object on any executor, with this package's code.

    Spark pickles functions of modules by name, and an executor without this package cannot import
    them. There the modules are compiled from the sources that are shipped.

    Args:
        it: The object.
        modules: The modules that Spark imports to run it.

    Returns:
        The function. On an executor without a package that it needs, it raises a RuntimeError that
        says so in one sentence.
    """
    return OnExecutors(_fetching(it), modules)


def _fetching(it: Shipped) -> Callable[[], Shipped]:
    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    code, sources, mine = dumps(it), _sources(), steelyard.__version__
    describe = describing()

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
        try:
            return pickle.loads(code)  # noqa: S301  # Spark does the same with every function
        except ImportError as error:
            cause = error.__cause__ or error  # our modules say themselves what they need
            if not isinstance(cause, ModuleNotFoundError) or cause.name is None:
                raise
            raise RuntimeError(describe([cause.name])) from error

    return fetch


def shipped(work: Work, modules: Sequence[str] = ALWAYS) -> Work:
    """Return the same work for `mapInArrow`, together with this package's code.

    Executors must be able to import the modules.
    """
    fetch = _fetching(work)

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from fetch()(batches)
        from steelyard.executor.quick_tasks import prepare_for_more

        prepare_for_more()

    return OnExecutors(run, modules)


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
