"""Describe aggregators in text that is the same in every process.

The text is stored, for example in a checkpoint, so it has no memory address and no set order.
"""

import hashlib
from enum import Enum
from typing import Any

import numpy as np

from steelyard.aggregators.base import Aggregator

_LONGEST = 200
"""The longest text of a setting, in characters. Longer texts are cut and get a digest."""


def described(aggregator: Aggregator) -> str:
    """Return the class of an aggregator, its public settings and its alias.

    A setting is described by its type if it is no number, no text and no collection of these.

    >>> from steelyard.aggregators import TopK
    >>> described(TopK("user", 3))
    "TopK(column='user', k=3, capacity=10000)"
    """
    public = {name: value for name, value in vars(aggregator).items() if name[0] != "_"}
    settings = ", ".join(f"{name}={_cut(_text(value))}" for name, value in public.items())
    alias = "" if aggregator.name == aggregator.default_name else f".alias({aggregator.name!r})"
    return f"{type(aggregator).__name__}({settings}){alias}"


def _text(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, dict):
        pairs = sorted(f"{_text(key)}: {_text(of)}" for key, of in value.items())
        return f"{{{', '.join(pairs)}}}"
    return type(value).__name__


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... (sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"
