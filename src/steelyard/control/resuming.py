"""Start a control loop where an earlier one stopped.

The content of `learned.json` enters; totals, a first assignment and a source side leave.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from steelyard.assignment import Assignment
from steelyard.delegation import Rules, SourceSide

_log = logging.getLogger("steelyard")

_WRONG_SHAPE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors that saved state can cause if another program wrote it."""

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """Totals since the control path was created."""

    slots: int = 0
    messages: int = 0
    moves: int = 0

    @classmethod
    def resume(cls, learned: Mapping[str, Any]) -> Self:
        """Return the saved totals, with 0 for each total that was not saved."""
        return cls(*(int(learned.get(name, 0)) for name in ("slots", "messages", "moves")))


def resumed(make: Callable[[Mapping[str, Any]], T], learned: Mapping[str, Any]) -> T:
    """Return `make(learned)`; if that fails, log a warning and return `make({})`."""
    try:
        return make(learned)
    except _WRONG_SHAPE:
        if not learned:
            raise
        _log.warning("control: learned.json cannot be understood; starting without it")
        return make({})


def resumed_source(rules: Rules, fresh: Assignment, saved: Mapping[str, Any] | None) -> SourceSide:
    """Return a source side that resumes from saved state as far as it fits.

    A saved assignment fits if it has the same workers and the same number of virtual workers. If
    other rules saved it, the new source side starts with that assignment and without requests.

    Args:
        rules: The current rules.
        fresh: The assignment to start from if the saved one does not fit.
        saved: The result of `SourceSide.save`; None if nothing was saved.
    """
    if saved is None:
        return rules.source(fresh)
    assignment = Assignment.resume(saved["assignment"])
    has_same_workers = set(assignment.workers) <= set(fresh.workers)
    if not has_same_workers or assignment.virtual_workers != fresh.virtual_workers:
        return rules.source(fresh)
    try:
        return rules.resume_source(saved)
    except _WRONG_SHAPE:
        _log.warning(
            "control: learned.json holds the state of other delegation rules; starting from its "
            "assignment"
        )
        return rules.source(assignment)


def first_assignment(
    workers: int, virtual_workers: int, capacities: Sequence[float] | None
) -> Assignment:
    """Return an equal assignment, or one in proportion to `capacities`.

    Every worker owns at least one virtual worker.

    >>> first_assignment(2, 5, capacities=[3, 1]).owned(1)
    [7, 8, 9]
    """
    if capacities is None:
        return Assignment.equal(workers, virtual_workers)
    rest = workers * virtual_workers - workers
    ends = np.cumsum(capacities) / np.sum(capacities) * rest + np.arange(1, workers + 1)
    cuts = [0, *np.rint(ends).astype(int).tolist()]
    return Assignment({w: range(cuts[w], cuts[w + 1]) for w in range(workers)})
