"""Salts by hand, as a routing plan: what many do against hot keys, to compare with."""

import numpy as np

from steelyard.routing_plan import WHOLE, RoutingPlan

SALTS, _BUCKETS = 10, 8192


def salting(workers: int) -> RoutingPlan:
    """What salts by hand do: each message of a key goes to one of ten workers by hashes.

    >>> set(salting(24).copies.tolist()) <= set(range(3, 11))
    True
    """
    places = np.random.default_rng(0).integers(0, workers, (_BUCKETS, SALTS))
    cells = []
    for own in places:
        # Salts that fall on one worker are one cell.
        hit, salts = np.unique(own, return_counts=True)
        ends = np.cumsum(salts) * WHOLE // SALTS
        cells.append(list(zip(hit.tolist(), ends.tolist(), strict=True)))
    return RoutingPlan.from_cells(workers, cells)
