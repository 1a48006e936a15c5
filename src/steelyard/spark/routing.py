"""How rows are routed, as the user says it: a `Balance`, a `RoutingPlan` or a `Scheme`.

The argument `routing` of a call enters; it leaves checked, before any work starts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from steelyard.plans import Balance, Planner, RoutingPlan

if TYPE_CHECKING:  # schemes are compiled: only those who use them need a compiler
    from steelyard.schemes import Scheme

Routing = Union[Balance, RoutingPlan, "Scheme"]


def require_routing(routing: object, allowed: Sequence[str]) -> None:
    """Refuse what does not say how to route rows, or not in this call."""
    kind = kind_of(routing)
    if kind in allowed:
        return
    if kind == "scheme":
        raise ValueError(
            f"routing: {routing!r} routes message by message, which only sy.group_by and "
            "sy.group_stream can do; pass a Balance or a RoutingPlan"
        )
    if kind == "plan":
        raise ValueError("routing: this call makes plans itself; pass a Balance, not a RoutingPlan")
    words = {"balance": "a Balance", "plan": "a RoutingPlan", "scheme": "a Scheme"}
    *first, last = (words[name] for name in allowed)
    listed = f"{', '.join(first)} or {last}" if first else last
    raise TypeError(f"routing must be {listed}, got {routing!r}")


def kind_of(routing: object) -> str:
    """One of "balance", "plan" and "scheme"; "" if it is none."""
    if isinstance(routing, Balance):
        return "balance"
    if isinstance(routing, RoutingPlan):
        return "plan"
    if any(base.__module__.startswith("steelyard.schemes") for base in type(routing).__mro__):
        return "scheme"
    return ""


def balance_of(routing: object) -> Balance:
    """The settings of the balancing; the defaults where something else routes the rows."""
    return routing if isinstance(routing, Balance) else Balance()


def planner_of(balance: Balance, bins: int, capacities: Sequence[float] | None = None) -> Planner:
    """A planner with these settings."""
    return Planner(bins, balance.epsilon, balance.buckets, capacities, decay=balance.decay)


def require_workers_of(plan: RoutingPlan, workers: int, tasks: int = 1) -> None:
    """Refuse a plan that was made for another number of workers."""
    if plan.bins == workers * tasks:
        return
    if tasks == 1:
        raise ValueError(f"the plan is for {plan.bins} workers, not for {workers}")
    raise ValueError(
        f"the plan is for {plan.bins} bins, not for {workers} workers of {tasks} tasks each"
    )


def require_not_decided(routing: object, **given: object) -> None:
    """Refuse settings of the balancing beside a plan or a scheme, which does without them."""
    if isinstance(routing, Balance):
        return
    for name, value in given.items():
        if value is not None:
            what = "a RoutingPlan" if isinstance(routing, RoutingPlan) else "a Scheme"
            raise ValueError(f"routing: {what} does not use {name}; pass one of them, not both")
