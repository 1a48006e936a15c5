"""Configurations: their ids, their results, and the tasks that run them."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import experiments
from steelyard.experiments import Configuration, Scale
from steelyard.experiments.configuration import run
from steelyard.experiments.execution import packed
from steelyard.experiments.paper_setup import cluster, constant
from steelyard.schemes import RandomChoices
from steelyard.simulator import Direct, SimulationSettings
from steelyard.spark.tasks import run_tasks


def small(messages=1000, scheme="PoRC", seed=0):
    stream = constant(messages, slots=10)
    return Configuration(
        "test",
        scheme,
        stream,
        cluster(stream, 4),
        Direct(RandomChoices()),
        settings=SimulationSettings(slot=60.0, tick=None, overload=True, seed=seed),
    )


def with_sources(sources):
    return replace(small(), settings=replace(small().settings, sources=sources))


@pytest.mark.parametrize("fraction", [1.0, 0.02])
@pytest.mark.parametrize("name", experiments.names())
def test_configurations_of_an_experiment_differ(name, fraction):
    """No two configurations have the same id or the same labels."""
    made = experiments.named(name).configurations(Scale(fraction))
    assert len({c.id for c in made}) == len(made) > 0
    labels = {tuple(sorted((k, str(v)) for k, v in c.labels.items())) for c in made}
    assert len(labels) == len(made)


def test_the_id_depends_on_every_setting():
    """Equal settings have equal ids; different settings have different ids."""
    assert small().id == small().id
    others = [small(2000), small(scheme="X"), small(seed=1), with_sources(2)]
    assert len({small().id, *(c.id for c in others)}) == 5


def test_two_runs_of_a_configuration_are_equal():
    """The results depend only on the seeds."""
    first, second = dict_of(run(small())), dict_of(run(small()))
    assert str(first) == str(second)
    assert first["messages"] == 1000
    assert first["imbalance"] <= 0.01 + 4 / 1000


def dict_of(measured):
    return {m.metric: m.value for m in measured}


@given(st.lists(st.integers(1, 40_000_000), max_size=30))
def test_every_configuration_is_in_one_task(messages):
    """Short configurations share a task, long ones run alone, and long tasks come first."""
    made = [small(n, seed=i) for i, n in enumerate(messages)]
    tasks = packed(made)
    assert sorted(c.id for task in tasks for c in task) == sorted(c.id for c in made)
    costs = [sum(c.cost for c in task) for task in tasks]
    assert costs == sorted(costs, reverse=True)
    assert all(len(task) == 1 or sum(c.cost for c in task[:-1]) < 2 for task in tasks)


def test_tasks_return_every_item_with_its_result(spark):
    """Each item appears once, regardless of the batches."""
    done = list(run_tasks(spark, [[-1, 2], [-3], [4, -5, 6]], abs, at_once=2))
    assert sorted(pair for batch in done for pair in batch) == [
        (-5, 5), (-3, 3), (-1, 1), (2, 2), (4, 4), (6, 6)
    ]  # fmt: skip


def test_an_error_in_a_task_is_not_swallowed(spark):
    """The caller gets the error with its message."""
    with pytest.raises(Exception, match=r"math domain error|expected a nonnegative input"):
        list(run_tasks(spark, [[4.0], [-1.0]], _root, at_once=1))


def test_an_error_interrupts_the_other_tasks(spark, tmp_path):
    """A task that runs beside the failed one does not finish."""
    slow, wrong = (60.0, str(tmp_path / "slow")), (-1.0, str(tmp_path / "wrong"))
    with pytest.raises(Exception, match=r"math domain error|nonnegative"):
        list(run_tasks(spark, [[slow], [wrong]], _sleep_or_fail, at_once=2))
    assert spark.range(3).count() == 3
    assert not any(tmp_path.iterdir())


def _sleep_or_fail(case):
    number, path = case
    if number > 0:
        time.sleep(number)
    Path(path).write_text(str(_root(number)), "utf-8")


def _root(number):
    import math

    return math.sqrt(number)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Scale(0), "scale must be a number at least 0.001 and at most 1, got 0"),
        (lambda: Scale(2.0), "scale must be a number"),
        (lambda: experiments.named("fig7"), "no experiment is named 'fig7'; the experiments are"),
    ],
)
def test_bad_settings_are_refused(make, sentence):
    """The error message names the given value and the allowed values."""
    with pytest.raises(ValueError, match=sentence):
        make()
