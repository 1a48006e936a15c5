"""Check a scheme of the user before it gets a name.

A class enters; it leaves if `named` can create its schemes.
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING
from typing import TypeVar

from steelyard.schemes.base import Scheme

SchemeClass = TypeVar("SchemeClass", bound=type[Scheme])

RESERVED = ("cg", "plans")
"""Names that `steelyard simulate` gives to groupings that are not schemes."""


def require_contract(found: object) -> None:
    """Refuse anything but a class of schemes with a name and a default for every setting."""
    if not inspect.isclass(found) or not issubclass(found, Scheme):
        raise TypeError(f"register takes a subclass of steelyard.schemes.Scheme, got {found!r}")
    if inspect.isabstract(found):
        raise TypeError(f"register: {found.__name__} must define router(bins, seed)")
    settings = vars(found).get("__dataclass_params__")
    if settings is None or not settings.frozen:
        raise TypeError(
            f"register: {found.__name__} must be a frozen dataclass: write "
            "@dataclass(frozen=True) between @register and the class"
        )
    for setting in vars(found)["__dataclass_fields__"].values():
        if setting.init and setting.default is MISSING and setting.default_factory is MISSING:
            raise TypeError(
                f"register: the setting {setting.name!r} of {found.__name__} needs a default "
                "value, because a name alone must create a scheme"
            )


def require_free_name(found: type[Scheme], known: Mapping[str, type[Scheme]]) -> None:
    """Refuse a class without a name, or with the name of another class."""
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9-]*", name):
        raise ValueError(
            f"register: {found.__name__} needs a name of lower-case letters, digits and hyphens, "
            f"such as name = 'mine', got {name!r}"
        )
    other = known.get(name)
    # A module may be loaded twice, for example in a notebook.
    is_other = other is not None and _path(other) != _path(found)
    if name in RESERVED or is_other:
        raise ValueError(
            f"register: the name {name!r} of {found.__name__} is taken; other names are free, but "
            f"not {', '.join([*RESERVED, *known])}"
        )


def _path(found: type[Scheme]) -> tuple[str, str]:
    return found.__module__, found.__qualname__
