"""Grouping schemes: the rules by which a source chooses a bin for each message.

>>> scheme = named("porc", epsilon=0.1)
>>> router = scheme.router(bins=8)
>>> 0 <= router.route(hash_of_a_key := 12345) < 8
True
"""

from steelyard.schemes.base import Router, Scheme, State
from steelyard.schemes.bounded_hashing import BoundedHashing
from steelyard.schemes.graded_choices import GradedChoices
from steelyard.schemes.head_choices import DChoices, WChoices
from steelyard.schemes.key import KeyGrouping
from steelyard.schemes.partial_key import PartialKey
from steelyard.schemes.random_choices import RandomChoices
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


def names() -> list[str]:
    """Return the names that `named` accepts.

    >>> names()
    ['kg', 'sg', 'pkg', 'salting', 'potc', 'ch', 'porc', 'porc-graded', 'dchoices',
     'wchoices']
    """
    return list(_SCHEMES)


def named(name: str, **settings: object) -> Scheme:
    """Return the scheme with this name and these settings; other settings have their defaults.

    >>> named("ch", epsilon=0.5)
    BoundedHashing(epsilon=0.5)
    """
    if name not in _SCHEMES:
        raise ValueError(f"no scheme is named {name!r}; the schemes are: {', '.join(_SCHEMES)}")
    return _SCHEMES[name].of(**settings)
