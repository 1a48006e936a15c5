"""Strategies and kinds of work: one value each, and only the public names in the package."""

import pickle

import pytest

import steelyard.doctor
from steelyard.doctor.strategies import STRATEGIES
from steelyard.doctor.work import WORKS, KindOfWork


@pytest.mark.parametrize("values", [STRATEGIES, WORKS], ids=["strategies", "works"])
def test_values_have_names_of_their_own_and_survive_pickling(values):
    """No two have the same name; a copy from another process equals the original."""
    assert len({value.name for value in values}) == len(values)
    assert values == pickle.loads(pickle.dumps(values))


def test_exactly_one_strategy_is_ours():
    """Figures and tables show it in a color of its own."""
    assert ["cg"] == [strategy.name for strategy in STRATEGIES if strategy.is_ours]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)
def test_a_work_is_found_by_its_name(work):
    """As JSON and the command line write it."""
    assert work is KindOfWork.named(work.name)


def test_an_unknown_work_is_refused():
    """In one sentence, with all that is allowed."""
    sentence = "work must be one of python, aggregate, join, write, stream, got 'magic'"
    with pytest.raises(ValueError, match=sentence):
        KindOfWork.named("magic")


def test_the_package_has_the_public_names_only():
    """Everything else is imported from its module."""
    public = {"Advice", "Cost", "Examination", "HotKey", "Interval", "OverTime", "examine"}
    assert public == set(steelyard.doctor.__all__)
    classes = {name for name, value in vars(steelyard.doctor).items() if isinstance(value, type)}
    assert public - {"examine"} == classes
