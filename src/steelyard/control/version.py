"""What sources need to know in a micro-batch: where buckets go, and who owns virtual workers."""

import json
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from steelyard.plans import RoutingPlan


@dataclass(frozen=True, eq=False)
class ControlVersion:
    """A plan over virtual workers and the owner of each; a value, numbered, never changed.

    Before anything was counted there is no plan, and sources plan from the rows that they see.

    >>> version = ControlVersion(1, None, np.array([0, 0, 1], np.int32))
    >>> ControlVersion.from_json(version.to_json()).owners
    array([0, 0, 1], dtype=int32)
    """

    number: int
    plan: RoutingPlan | None
    owners: NDArray[np.int32]
    """By virtual worker: its worker."""

    def fits(self, virtual_workers: int, buckets: int, workers: int) -> bool:
        """Return whether it is for these numbers of virtual workers, buckets and workers."""
        is_for_buckets = self.plan is None or self.plan.buckets == buckets
        if self.owners.shape != (virtual_workers,) or not is_for_buckets:
            return False
        return bool(self.owners.min() >= 0 and self.owners.max() < workers)

    def says(self, plan: RoutingPlan | None, owners: NDArray[np.int32]) -> bool:
        """Whether this is what it tells the sources."""
        return self.plan == plan and bool(np.array_equal(self.owners, owners))

    def to_json(self) -> str:
        plan = None if self.plan is None else self.plan.fields()
        if plan is not None:  # nobody routes by the shares: short numbers will do
            plan["shares"] = [float(f"{share:.5g}") for share in plan["shares"]]
        fields = {"number": self.number, "owners": self.owners.tolist(), "plan": plan}
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The version that `to_json` wrote."""
        try:
            fields = json.loads(text)
            owners = np.array(fields["owners"], np.int32)
            number, plan = int(fields["number"]), fields["plan"]
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"this is not the JSON of a control version: {error!r}") from error
        made = None if plan is None else RoutingPlan.from_fields(plan)
        if made is not None and made.bins != owners.size:
            raise ValueError(
                f"a control version's plan is for {made.bins} virtual workers and its assignment "
                f"for {owners.size}"
            )
        return cls(number, made, owners)
