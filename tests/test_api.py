"""The shape of the public API: few parameters, the same names and defaults in every call."""

import inspect
import re

import pytest

import steelyard as sy

MOST = 10
"""Parameters of a call, besides the columns of the key."""


def callables():
    """Every public function, class and method by its name."""
    for name in sy.__all__:
        found = getattr(sy, name)
        if inspect.isfunction(found) or inspect.isclass(found):
            yield name, found
        if inspect.isclass(found):
            for method, function in inspect.getmembers(found, inspect.isroutine):
                if not method.startswith("_") and "steelyard" in (function.__module__ or ""):
                    yield f"{name}.{method}", function


def parameters(function):
    """The parameters of a call, without its receiver and the columns of the key."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.name != "self" and p.kind not in kinds}


CALLS = dict(callables())
DISTRIBUTING = ("plan", "repartition", "group_by", "group_stream", "join", "Balancer")
"""The calls that distribute rows."""


@pytest.mark.parametrize("name", CALLS)
def test_no_call_has_too_many_parameters(name):
    """A reader can keep them in mind."""
    assert len(parameters(CALLS[name])) <= MOST


def test_a_name_has_one_default():
    """What tunes the balancing means the same, and is the same, wherever it is accepted."""
    defaults = {}
    for call in DISTRIBUTING:
        for name, default in parameters(CALLS[call]).items():
            if default is not inspect.Parameter.empty:
                defaults.setdefault(name, set()).add(default)
    assert {name: values for name, values in defaults.items() if len(values) > 1} == {}


def test_every_distributing_call_accepts_a_balance():
    """The rarely used settings live in one object."""
    assert {sy.Balance()} == {parameters(CALLS[call])["routing"] for call in DISTRIBUTING}


def described(docstring):
    """The names that the part `Args:` of a docstring describes."""
    found = re.search(r"^Args:\n((?:(?: {4}.*)?\n)+)", inspect.cleandoc(docstring) + "\n", re.M)
    return re.findall(r"^ {4}(\w+): ", found[1], re.MULTILINE) if found else []


@pytest.mark.parametrize("call", DISTRIBUTING)
def test_every_argument_is_described(call):
    """In the order of the signature."""
    names = [name for name in inspect.signature(CALLS[call]).parameters if name != "self"]
    assert names == described(CALLS[call].__doc__)
