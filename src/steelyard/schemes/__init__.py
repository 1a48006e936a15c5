"""Grouping schemes: the rules by which a source chooses a bin for each message.

>>> scheme = named("porc", epsilon=0.1)
>>> router = scheme.router(bins=8)
>>> 0 <= router.route(hash_of_a_key := 12345) < 8
True
"""

from steelyard.schemes import testing
from steelyard.schemes.base import Router, Scheme, State
from steelyard.schemes.bounded_hashing import BoundedHashing
from steelyard.schemes.graded_choices import GradedChoices
from steelyard.schemes.head_choices import DChoices, WChoices
from steelyard.schemes.key import KeyGrouping
from steelyard.schemes.partial_key import PartialKey
from steelyard.schemes.random_choices import RandomChoices
from steelyard.schemes.registration import (
    SchemeClass,
    require_contract,
    require_free_name,
)
from steelyard.schemes.salting import Salting
from steelyard.schemes.shuffle import Shuffle
from steelyard.schemes.two_choices import TwoChoices

__all__ = [
    "BoundedHashing",
    "DChoices",
    "GradedChoices",
    "KeyGrouping",
    "PartialKey",
    "RandomChoices",
    "Router",
    "Salting",
    "Scheme",
    "Shuffle",
    "State",
    "TwoChoices",
    "WChoices",
    "named",
    "names",
    "register",
    "testing",
]

_SCHEMES: dict[str, type[Scheme]] = {
    scheme.name: scheme
    for scheme in (
        KeyGrouping,
        Shuffle,
        PartialKey,
        Salting,
        TwoChoices,
        BoundedHashing,
        RandomChoices,
        GradedChoices,
        DChoices,
        WChoices,
    )
}


_OWN: dict[str, type[Scheme]] = {}
"""The schemes that users have registered."""


def register(scheme: SchemeClass) -> SchemeClass:
    """Give a scheme of your own its name, for `named`, `names` and the command line.

    Use it as a decorator of the class. `docs/own-schemes.md` describes what the class must define.

    Raises:
        TypeError: `scheme` is not a subclass of `Scheme`, is not a frozen dataclass, or has a
            setting without a default.
        ValueError: The class has no name, or a name that is taken.

    >>> from dataclasses import dataclass
    >>> class ToTheLast(Router):
    ...     def choose(self, key_hash, loads):
    ...         return self.bins - 1
    >>> @register
    ... @dataclass(frozen=True)
    ... class Last(Scheme):
    ...     name = "last"
    ...     def router(self, bins, seed=0):
    ...         return ToTheLast(self, bins, seed)
    >>> named("last").router(bins=4).route(12345), names()[-1]
    (3, 'last')
    """
    require_contract(scheme)
    require_free_name(scheme, _SCHEMES | _OWN)
    _OWN[scheme.name] = scheme
    return scheme


def names() -> list[str]:
    """Return the names that `named` accepts: first those of this package.

    >>> names()
    ['kg', 'sg', 'pkg', 'salting', 'potc', 'ch', 'porc', 'porc-graded', 'dchoices',
     'wchoices']
    """
    return [*_SCHEMES, *_OWN]


def named(name: str, **settings: object) -> Scheme:
    """Return the scheme with this name and these settings; other settings have their defaults.

    >>> named("ch", epsilon=0.5)
    BoundedHashing(epsilon=0.5)
    """
    known = _SCHEMES | _OWN
    if name not in known:
        raise ValueError(f"no scheme is named {name!r}; the schemes are: {', '.join(known)}")
    return known[name].of(**settings)
