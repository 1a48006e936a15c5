"""A control loop with other delegation rules than the default."""

import json
import logging

import numpy as np
import pytest

from steelyard.assignment import Assignment
from steelyard.control.resuming import resumed_source
from steelyard.control.store import ControlStore
from steelyard.delegation import BusyTime, PaperRules, QueueLength, SteadyRules
from tests.control.model import Model, controller, zipf

SPEEDS = [1, 1, 1, 1, 1, 1, 0.3, 0.3]
SLOW = {6, 7}


def model(rules, **settings):
    """Return a model of eight workers, two of them slow, with few virtual workers.

    The paper's rules move one at a time, so few virtual workers converge faster.
    """
    loop = controller(8, virtual_workers=20, rules=rules, **settings)
    return Model(SPEEDS, loop, zipf(1.0), rows=20_000)


@pytest.mark.parametrize(
    "rules",
    [
        PaperRules(),
        PaperRules(measure=BusyTime(), low=0.7, high=0.9),
        PaperRules(measure=QueueLength(capacity=2_000), low=0.1, high=0.2),
    ],
    ids=["work", "busy time", "queue length"],
)
@pytest.mark.parametrize("foresees", [True, False])
def test_the_papers_rules_move_virtual_workers_from_slow_workers(rules, foresees):
    """Each pair moves one virtual worker per slot, until all workers are equally busy."""
    running = model(rules, foresees=foresees)
    used = running.run(20)
    history = list(running.controller.history)
    early = history[1:7]  # without the first slot, which has no plan, so hot keys dominate
    moves = [len(slot.moves) for slot in early]
    assert max(moves) == len(SLOW)
    assert sum(moves) >= len(SLOW) * len(early) - 1
    assert SLOW == {giver for slot in early for _, giver, _ in slot.moves}
    takers = [taker for slot in early for _, _, taker in slot.moves]
    # A worker that is idle in the first slot keeps its place in the queue, as published.
    assert sum(taker in SLOW for taker in takers) <= 1
    owned = [worker.virtual_workers for worker in history[-1].workers]
    assert max(owned[6:]) <= 10
    assert min(owned[:6]) >= 20
    assert max(used[:3]) < 0.5
    assert min(used[-4:]) > 0.65


@pytest.mark.parametrize("rules", [PaperRules(), SteadyRules()], ids=["paper", "steady"])
def test_rules_resume_from_their_saved_state(tmp_path, rules, caplog):
    """The version, the assignment and the pairing of workers are the same."""
    first = model(rules, store=ControlStore(tmp_path))
    first.run(5)
    saved = first.controller.store.learned()["source"]
    side = resumed_source(rules, Assignment.equal(8, 20), saved)
    assert saved == json.loads(json.dumps(side.save()))
    again = model(rules, store=ControlStore(tmp_path))
    assert first.controller.version.number == again.controller.version.number
    assert first.controller.version.owners.tolist() == again.controller.version.owners.tolist()
    again.run(1)
    assert 6 == again.controller.history[0].slot
    assert not caplog.records


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PaperRules(), SteadyRules()),
        (SteadyRules(), PaperRules()),
        (None, PaperRules()),
        (PaperRules(), None),
    ],
    ids=["paper, steady", "steady, paper", "default, paper", "paper, default"],
)
def test_other_rules_start_from_the_saved_assignment(tmp_path, caplog, before, after):
    """Slots, totals and counts continue too; a warning names the part that is not used."""
    first = model(before, store=ControlStore(tmp_path))
    first.run(6)
    owners = first.controller.version.owners
    assert owners.tolist() != np.repeat(np.arange(8), 20).tolist()
    with caplog.at_level(logging.WARNING):
        second = model(after, store=ControlStore(tmp_path))
    assert ["starting from its assignment" in message for message in caplog.messages] == [True]
    assert owners.tolist() == second.controller.version.owners.tolist()
    assert first.controller.version.number == second.controller.version.number
    second.run(12)
    last = second.controller.history[-1]
    assert (18, 18 * 20_000) == (last.slot, last.messages_so_far)
    owned = [worker.virtual_workers for worker in last.workers]
    assert max(owned[6:]) < min(owned[:6])
