"""Control versions: the plan and the assignment that sources follow in a micro-batch."""

import json
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from steelyard.plans import RoutingPlan


@dataclass(frozen=True, eq=False)
class ControlVersion:
    """A numbered plan and the owner of every virtual worker; never changed once written.

    Before the first count there is no plan. Each source then plans from its own rows.

    >>> version = ControlVersion(1, None, np.array([0, 0, 1], np.int32))
    >>> ControlVersion.from_json(version.to_json()).owners
    array([0, 0, 1], dtype=int32)
    """

    number: int
    plan: RoutingPlan | None
    owners: NDArray[np.int32]
    """The worker of each virtual worker."""

    def fits(self, virtual_workers: int, buckets: int, workers: int) -> bool:
        """Return whether the version has these numbers of virtual workers, buckets and workers."""
        is_for_buckets = self.plan is None or self.plan.buckets == buckets
        if self.owners.shape != (virtual_workers,) or not is_for_buckets:
            return False
        return bool(self.owners.min() >= 0 and self.owners.max() < workers)

    def matches(self, plan: RoutingPlan | None, owners: NDArray[np.int32]) -> bool:
        """Return whether the version has this plan and these owners."""
        return self.plan == plan and bool(np.array_equal(self.owners, owners))

    def to_json(self) -> str:
        plan = None if self.plan is None else self.plan.fields()
        if plan is not None:  # routing does not use the shares, so they are rounded
            plan["shares"] = [float(f"{share:.5g}") for share in plan["shares"]]
        fields = {"number": self.number, "owners": self.owners.tolist(), "plan": plan}
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the version that `to_json` wrote; raise a ValueError for any other text."""
        try:
            fields = json.loads(text)
            owners = np.array(fields["owners"], np.int32)
            number, plan = int(fields["number"]), fields["plan"]
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"this is not the JSON of a control version: {error!r}") from error
        made = None if plan is None else RoutingPlan.from_fields(plan)
        if made is not None and made.bins != owners.size:
            raise ValueError(
                f"this control version is damaged: its plan has {made.bins} virtual workers, and "
                f"its assignment has {owners.size}"
            )
        return cls(number, made, owners)
