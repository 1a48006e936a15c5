"""Check the argument `routing` of a call: a `Balance`, a `RoutingPlan` or a `Scheme`.

The argument enters; it leaves checked, before any work starts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from steelyard.plans import Balance, Planner, RoutingPlan

if TYPE_CHECKING:  # schemes need numba, so they are loaded only where they are used
    from steelyard.schemes import Scheme

Routing = Union[Balance, RoutingPlan, "Scheme"]


def require_routing(routing: object, allowed: Sequence[str]) -> None:
    """Refuse a value that is not a routing, or a kind of routing that is not allowed here."""
    kind = kind_of(routing)
    if kind in allowed:
        if kind == "scheme":
            _require_router(routing)
        return
    if kind == "scheme":
        raise ValueError(
            f"routing: only sy.group_by and sy.group_stream accept a Scheme, got {routing!r}; "
            "pass a Balance or a RoutingPlan"
        )
    if kind == "plan":
        raise ValueError("routing: this call makes its own plan; pass a Balance, not a RoutingPlan")
    words = {"balance": "a Balance", "plan": "a RoutingPlan", "scheme": "a Scheme"}
    *first, last = (words[name] for name in allowed)
    listed = f"{', '.join(first)} or {last}" if first else last
    raise TypeError(f"routing must be {listed}, got {routing!r}")


def kind_of(routing: object) -> str:
    """Return "balance", "plan" or "scheme"; "" if the value is none of them."""
    if isinstance(routing, Balance):
        return "balance"
    if isinstance(routing, RoutingPlan):
        return "plan"
    if any(base.__module__.startswith("steelyard.schemes") for base in type(routing).__mro__):
        return "scheme"
    return ""


def _require_router(scheme: Any) -> None:
    """Refuse a scheme of the user that makes no router; otherwise its tasks would fail."""
    router = scheme.router(1)
    if not hasattr(router, "route_many"):
        raise TypeError(
            f"routing: {type(scheme).__name__}.router must return a steelyard.schemes.Router, got "
            f"{type(router).__name__}"
        )


def balance_of(routing: object) -> Balance:
    """Return the settings of the balancing; the defaults if a plan or a scheme is given."""
    return routing if isinstance(routing, Balance) else Balance()


def planner_of(balance: Balance, bins: int, capacities: Sequence[float] | None = None) -> Planner:
    """Return a planner with these settings."""
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


def require_key_of(routing: object, key: Sequence[str] | None) -> None:
    """Refuse a plan that was made for another key, because it would not balance this one.

    A plan of unknown key is accepted. Spark may ignore the case of names, so case does not matter.
    """
    made_for = routing.key if isinstance(routing, RoutingPlan) else None
    if made_for is None or key is None or _folded(made_for) == _folded(key):
        return
    before, now = (", ".join(map(repr, names)) for names in (made_for, key))
    raise ValueError(
        f"routing: the plan was made for the key {before}, not for {now}; make a plan for this key "
        "with sy.plan"
    )


def _folded(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def require_not_decided(routing: object, **given: object) -> None:
    """Refuse settings of the balancing together with a plan or a scheme, which ignore them."""
    if isinstance(routing, Balance):
        return
    for name, value in given.items():
        if value is not None:
            what = "a RoutingPlan" if isinstance(routing, RoutingPlan) else "a Scheme"
            raise ValueError(f"routing: {what} does not use {name}; pass one of them, not both")
