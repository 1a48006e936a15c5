"""The option `--import`: a module of the user that registers schemes.

The name of a module enters; its schemes are then known by their names.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from steelyard.cli.console import refuse, require_packages
from steelyard.cli.options import GROUPING


def load(names: list[str] | None) -> list[str] | None:
    """Import modules, also from the current folder, and check the schemes that they register."""
    if not names:
        return names
    require_packages("a scheme", "schemes", "numba")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    for name in names:
        _import(name)
    return names


def _import(name: str) -> None:
    # Imported here: --help and --version do not need the compiler.
    from steelyard import schemes

    if not all(part.isidentifier() for part in name.split(".")) or name.endswith(".py"):
        refuse(ValueError(f"import must be the name of a module, such as my_schemes, got {name!r}"))
    try:
        import_module(name)
    except Exception as error:  # noqa: BLE001  # the code of the user may raise anything
        kind = type(error).__name__
        refuse(ValueError(f"import: the module {name!r} cannot be imported: {kind}: {error}"))
    registered = [scheme for scheme in map(schemes.named, schemes.names()) if _is_own(scheme)]
    if not registered:
        refuse(
            ValueError(
                f"import: the module {name!r} registers no scheme; write "
                "@steelyard.schemes.register above its class"
            )
        )
    for scheme in registered:
        try:
            schemes.testing.check_scheme(scheme)
        except Exception as error:  # noqa: BLE001
            refuse(ValueError(f"import: the scheme {scheme.name!r} breaks a promise: {error}"))


def _is_own(scheme: Any) -> bool:
    return not type(scheme).__module__.startswith("steelyard.")


Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="Module that registers schemes of your own.",
        metavar="MODULE",
        callback=load,
        is_eager=True,  # before the option --scheme is checked
        rich_help_panel=GROUPING,
    ),
]
