"""The settings of balancing, placements and windows are checked when they are created."""

import inspect

import pytest

import steelyard as sy
from steelyard.control.controller import Controller
from steelyard.simulator import Plans


@pytest.mark.parametrize(
    ("make", "settings", "sentence"),
    [
        (sy.Balance, {"epsilon": 0}, "epsilon must be a number above 0"),
        (sy.Balance, {"epsilon": 11}, "epsilon must be a number above 0 and at most 10"),
        (sy.Balance, {"sample": 2}, "sample must be a number above 0 and at most 1"),
        (sy.Balance, {"buckets": 0}, "buckets must be a whole number"),
        (sy.Balance, {"decay": 2}, "decay must be a number at least 0 and at most 1"),
        (sy.Pull, {"tasks_per_worker": 0}, "tasks_per_worker must be a whole number"),
        (sy.Delegated, {"virtual_workers": 0}, "virtual_workers must be a whole number"),
        (sy.Delegated, {"period": 0}, "period must be a whole number"),
        (sy.Delegated, {"period": "soon"}, "period must be a length of time such as"),
        (sy.Delegated, {"capacities": [1, 0]}, "capacities must be a number above 0"),
        (sy.Window, {"time": "at", "length": "soon"}, "window must be a length of time such as"),
        (
            sy.Window,
            {"time": "at", "length": "1 hour", "slide": "40 minutes"},
            "window must be a whole number of slides",
        ),
        (
            sy.Window,
            {"time": "at", "length": "1 hour", "watermark": "late"},
            "watermark must be a length of time such as",
        ),
    ],
)
def test_a_bad_setting_is_refused_with_one_sentence(make, settings, sentence):
    """The error is raised without a DataFrame or a Spark session."""
    with pytest.raises(ValueError, match=sentence):
        make(**settings)


def test_the_name_of_rules_is_refused_with_one_sentence():
    """`rules` must be an object; its name is a likely mistake."""
    with pytest.raises(TypeError, match="rules must be SteadyRules"):
        sy.Delegated(rules="paper")


def test_decay_has_one_default():
    """Streams, plans by hand and simulations forget earlier counts equally fast."""
    makers = (sy.Balance, sy.Planner, Plans, Controller)
    assert {0.2} == {inspect.signature(make).parameters["decay"].default for make in makers}
