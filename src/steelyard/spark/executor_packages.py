"""Say in one sentence which packages the Python of an executor lacks.

Modules that a feature imports enter; an error that names the packages leaves. It also names the
Python and the host that lack them, and the command that installs them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import steelyard

ALWAYS = ("numpy", "pyarrow")
"""Modules that all Python work of this package imports on executors."""

WITH_PANDAS = (*ALWAYS, "pandas")
"""Modules that functions of pandas DataFrames need there."""

STATEFUL = (*WITH_PANDAS, "google.protobuf.descriptor")
"""Modules that stateful Python work imports there, in Spark's own code too.

PySpark may contain a folder `google/protobuf` without that package, so the last name is a module.
"""

_PIP = {
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "pandas": "pandas<3",
    "protobuf": "protobuf",
    "datasketches": "datasketches",
    "numba": "numba",
    "steelyard": f"steelyard-{steelyard.__version__}-py3-none-any.whl",
}
"""What pip installs for each package that this one needs."""

_NAMES = {"google": "protobuf"}
"""Packages whose modules have another name."""


def describing() -> Callable[[Sequence[str]], str]:
    """Return a function that says which modules the Python that runs it lacks.

    The function runs on any executor: Spark pickles functions that are defined inside a function by
    value, and this one imports only modules of Python itself.
    """
    pip, names = _PIP, _NAMES

    def describe(modules: Sequence[str]) -> str:
        import shlex
        import socket
        import sys

        roots = [module.partition(".")[0] for module in modules]
        packages = [names.get(root, root) for root in roots]
        listed = " and ".join(filter(None, [", ".join(packages[:-1]), packages[-1]]))
        them = "it" if len(packages) == 1 else "them"
        advice = f"install {them} on every executor, or send {them} with spark.submit.pyFiles"
        if all(package in pip for package in packages):
            wanted = [pip[package] for package in packages]
            command = shlex.join([sys.executable, "-m", "pip", "install", *wanted])
            advice = (
                f"install {them} on every executor, for example with `{command}`, or set "
                f"PYSPARK_PYTHON to a Python that has {them}"
            )
        return (
            f"the Python of Spark's tasks ({sys.executable} on the host {socket.gethostname()}) "
            f"cannot import {listed}, which this job needs: {advice}"
        )

    return describe


def finding(modules: Sequence[str]) -> Callable[[], list[str]]:
    """Return a function that returns those of these modules that its Python lacks."""
    wanted = tuple(modules)

    def find() -> list[str]:
        import importlib.util
        import sys

        lacking = []
        for module in wanted:
            if sys.modules.get(module) is not None:
                continue
            try:
                found = importlib.util.find_spec(module) is not None
            except ModuleNotFoundError:  # the package of the module is missing
                found = False
            if not found:
                lacking.append(module)
        return lacking

    return find


def require_on_executors(
    session: SparkSession, modules: Sequence[str], fetch: Callable[[], Any] = lambda: None
) -> None:
    """Refuse work whose packages an executor lacks; one small task asks one executor.

    The task needs no package itself.

    Args:
        session: The session of the work.
        modules: The modules that the work imports.
        fetch: Creates the work on an executor; it raises a RuntimeError if a module that the work
            imports is missing.

    Raises:
        RuntimeError: A package is missing.
    """
    find, describe = finding(modules), describing()

    def look(_: int) -> str | None:
        lacking = find()
        if lacking:
            return describe(lacking)
        try:
            fetch()
        except RuntimeError as error:
            return str(error)
        return None

    asked = F.udf(look, "string", useArrow=False)
    row = session.range(0, 1, 1, 1).select(asked("id").alias("lack")).first()
    if row is not None and row["lack"] is not None:
        raise RuntimeError(row["lack"])
