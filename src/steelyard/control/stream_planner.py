"""The plan of a stream, which does not exist before the first count.

Counts of messages per bucket enter; a plan leaves.
"""

from collections.abc import Mapping
from typing import Any, Self

from steelyard.control.slot_totals import Floats
from steelyard.plans import Planner, RoutingPlan


class StreamPlanner:
    """A planner that has no plan before it has counted messages.

    >>> import numpy as np
    >>> planner = StreamPlanner(Planner(2, buckets=4))
    >>> planner.plan is None
    True
    >>> planner.update(np.array([1.0, 2.0, 3.0, 4.0]))
    >>> planner.plan.bins
    2
    """

    def __init__(self, planner: Planner, *, has_counted: bool = False) -> None:
        self._planner, self._has_counted = planner, has_counted

    @property
    def buckets(self) -> int:
        """The number of buckets that keys are counted in."""
        return self._planner.buckets

    @property
    def plan(self) -> RoutingPlan | None:
        """The newest plan; None before the first count."""
        return self._planner.plan if self._has_counted else None

    def update(self, counts: Floats) -> None:
        """Update the plan with the counts of a slot; ignore a slot without messages."""
        if counts.any():
            self._planner.update(counts)
            self._has_counted = True

    def save(self) -> dict[str, Any]:
        """Return the counts as a dictionary for JSON.

        The plan is saved in versions, and the settings are passed again at a restart.
        """
        return {
            "buckets": self._planner.buckets,
            "counts": [float(f"{count:.4g}") for count in self._planner.counts],
            "has_counted": self._has_counted,
        }

    @classmethod
    def resume(
        cls, fresh: Planner, saved: Mapping[str, Any] | None, plan: RoutingPlan | None
    ) -> Self:
        """Return a planner that resumes from saved counts as far as they fit.

        The counts fit if the number of buckets is the same. The plan fits if the number of virtual
        workers is the same too.

        Args:
            fresh: A planner with the current settings.
            saved: The result of `save`; None if nothing was saved.
            plan: The plan of the newest version.
        """
        has_counted = bool((saved or {}).get("has_counted"))
        if saved is None or saved["buckets"] != fresh.buckets:
            return cls(fresh, has_counted=has_counted)
        if plan is not None and (plan.bins, plan.buckets) == (fresh.bins, fresh.buckets):
            state = {**fresh.save(), "counts": saved["counts"], "plan": plan.to_json()}
            return cls(Planner.resume(state), has_counted=has_counted)
        if any(saved["counts"]):
            fresh.update(saved["counts"])
        return cls(fresh, has_counted=has_counted)
