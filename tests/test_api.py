"""The public API: few parameters, the same names and defaults in every call, described in order."""

import enum
import inspect
import re
from pathlib import Path

import pytest

import steelyard as sy
from steelyard import aggregators
from steelyard.aggregators.naming import AGGREGATORS, aggregator_named

MOST = 10
"""The most parameters of a call, besides the columns of the key."""

UNDESCRIBED = 3
"""Up to this number of parameters, a docstring needs no `Args:`."""

DISTRIBUTING = ("plan", "repartition", "balanced", "group_by", "group_stream", "join", "Balancer")
"""The calls that distribute rows."""

RESULTS = {"doctor.Cost", "doctor.Examination", "doctor.Interval", "doctor.OverTime"}
"""Classes that only Steelyard creates. The docstrings of their fields describe them."""


def public_objects():
    """Yield every public function and class, also those of public modules, with its name."""
    for name in sy.__all__:
        found = getattr(sy, name)
        if not inspect.ismodule(found):
            yield name, found
            continue
        for inner in found.__all__:
            yield f"{name}.{inner}", getattr(found, inner)


def callables():
    """Yield every public function, constructor and method, with its name."""
    for name, found in public_objects():
        if inspect.isclass(found):
            if not issubclass(found, enum.Enum):
                yield name, found
            for method, function in inspect.getmembers(found, inspect.isroutine):
                if not method.startswith("_") and "steelyard" in (function.__module__ or ""):
                    yield f"{name}.{method}", function
        elif inspect.isfunction(found):
            yield name, found


def parameters(function):
    """Return the parameters of a call and their defaults, without `self` and the key columns."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    left_out = ("self", "key")
    return {p.name: p.default for p in found if p.name not in left_out and p.kind not in kinds}


CALLS = {name: call for name, call in callables() if name not in RESULTS}
LONG_CALLS = [name for name, call in CALLS.items() if len(parameters(call)) > UNDESCRIBED]


@pytest.mark.parametrize("name", CALLS)
def test_no_call_has_too_many_parameters(name):
    assert len(parameters(CALLS[name])) <= MOST


def test_a_parameter_has_the_same_default_in_every_distributing_call():
    defaults = {}
    for call in DISTRIBUTING:
        for name, default in parameters(CALLS[call]).items():
            if default is not inspect.Parameter.empty:
                defaults.setdefault(name, set()).add(default)
    assert {name: values for name, values in defaults.items() if len(values) > 1} == {}


def test_every_distributing_call_accepts_a_balance():
    """One object holds the settings that are rarely changed."""
    assert {sy.Balance()} == {parameters(CALLS[call])["routing"] for call in DISTRIBUTING}


def described(docstring):
    """Return the names that the section `Args:` of a docstring describes."""
    found = re.search(r"^Args:\n((?:(?: {4}.*)?\n)+)", inspect.cleandoc(docstring) + "\n", re.M)
    return re.findall(r"^ {4}\*{0,2}(\w+): ", found[1], re.MULTILINE) if found else []


@pytest.mark.parametrize("name", LONG_CALLS)
def test_every_parameter_is_described_in_the_order_of_the_signature(name):
    """The section `Args:` lists exactly the parameters, including the columns of the key."""
    names = [name for name in inspect.signature(CALLS[name]).parameters if name != "self"]
    assert names == described(CALLS[name].__doc__ or "")


def test_every_distributing_call_has_described_parameters():
    """The check of descriptions includes the calls that matter most."""
    assert set(DISTRIBUTING) <= set(LONG_CALLS)


def test_every_scheme_is_public_and_in_the_reference():
    """The command line, the package and the reference know the same schemes."""
    page = (Path(__file__).parents[1] / "docs" / "api" / "schemes.md").read_text()
    for name in sy.schemes.names():
        assert type(sy.schemes.named(name)).__name__ in sy.schemes.__all__
        assert f"`{name}`" in page


def test_every_aggregator_has_a_name_for_the_command_line():
    """A text such as `max:column` makes each public aggregator."""
    made = {type(aggregator_named(text)) for text in AGGREGATORS}
    bases = {"Aggregation", "Aggregator", "Groups"}
    assert {getattr(aggregators, name) for name in aggregators.__all__ if name not in bases} == made
