"""Salts by hand, as a routing plan: what many do against hot keys, to compare with."""

import numpy as np

from steelyard.routing_plan import WHOLE, RoutingPlan

SALTS, _BUCKETS = 10, 8192


def salting(workers: int) -> RoutingPlan:
    """What salts by hand do: each message of a key goes to one of ten workers by hashes.

    >>> set(salting(24).copies.tolist()) <= set(range(3, 11))
    True
    """
    places = np.sort(np.random.default_rng(0).integers(0, workers, (_BUCKETS, SALTS)))
    # Salts of a bucket that fall on one worker are one cell, which ends behind the last of them.
    is_last = np.diff(places, append=workers) > 0
    return RoutingPlan(
        bins=workers,
        starts=np.concatenate(([0], is_last.sum(axis=1).cumsum())),
        bins_of=places[is_last].astype(np.int32),
        ends=(np.nonzero(is_last)[1] + 1) * WHOLE // SALTS,
        shares=np.zeros(workers),
    )
