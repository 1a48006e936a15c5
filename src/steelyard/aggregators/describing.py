"""Aggregators as text that is the same in every process.

It is for what outlives a process, such as a checkpoint: no address and no order of a set is in it.
"""

import hashlib
from enum import Enum
from typing import Any

import numpy as np

from steelyard.aggregators.base import Aggregator

_LONGEST = 200
"""Characters; longer settings are cut, and a digest tells them apart."""


def described(aggregator: Aggregator) -> str:
    """The class of an aggregator and its public settings.

    A setting that is neither a number, a text, nor a collection of them is described by its type.

    >>> from steelyard.aggregators import TopK
    >>> described(TopK("user", 3))
    "TopK(column='user', k=3, capacity=30)"
    """
    public = {name: value for name, value in vars(aggregator).items() if name[0] != "_"}
    settings = ", ".join(f"{name}={_cut(_text(value))}" for name, value in public.items())
    return f"{type(aggregator).__name__}({settings})"


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
