"""Strategies and kinds of work are values, and the package exports only its public names."""

import pickle

import pytest

import steelyard.doctor
from steelyard.doctor.strategies import STRATEGIES
from steelyard.doctor.work import WORKS, KindOfWork


@pytest.mark.parametrize("values", [STRATEGIES, WORKS], ids=["strategies", "works"])
def test_values_have_unique_names_and_survive_pickling(values):
    assert len({value.name for value in values}) == len(values)
    assert values == pickle.loads(pickle.dumps(values))


def test_exactly_one_strategy_is_ours():
    """Figures and tables highlight it."""
    assert ["cg"] == [strategy.name for strategy in STRATEGIES if strategy.is_ours]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)
def test_a_work_is_found_by_its_name(work):
    """The name is the same in JSON and on the command line."""
    assert work is KindOfWork.named(work.name)


def test_an_unknown_work_is_refused():
    """The sentence lists the allowed kinds of work."""
    sentence = "work must be one of python, aggregate, join, write, stream, got 'magic'"
    with pytest.raises(ValueError, match=sentence):
        KindOfWork.named("magic")


def test_the_package_has_the_public_names_only():
    """Other names are imported from their modules."""
    public = {"Advice", "Cost", "Estimates", "Examination", "HotKey", "Interval", "OverTime"}
    public |= {"examine"}
    assert public == set(steelyard.doctor.__all__)
    classes = {name for name, value in vars(steelyard.doctor).items() if isinstance(value, type)}
    assert public - {"examine"} == classes
