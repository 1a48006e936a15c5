"""Compare all schemes: balance, memory, work and speed."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.streams import MESSAGES, hashes, ranks
from benchmarks.timing import best_seconds, table
from steelyard import metrics, schemes
from steelyard._compiled import compiled
from steelyard.hashing import seed_mask
from steelyard.schemes.choices import choice

SETTINGS = [(0.5, 1000), (0.8, 100), (1.0, 100), (1.0, 1000), (1.4, 1000), (2.0, 1000)]


@compiled
def plain_algorithm_1(keys: Any, mask: Any, epsilon: Any, loads: Any, out: Any) -> None:
    """Route by Algorithm 1 as the paper writes it: the baseline of the speed-up."""
    bins = loads.size
    for i in range(keys.size):
        room = (1 + epsilon) * (i + 1) / bins
        key = keys[i] ^ mask
        salt = 1
        b = choice(key, salt, bins)
        while loads[b] >= room:
            salt += 1
            b = choice(key, salt, bins)
        loads[b] += 1
        out[i] = b


def _route(name: str, bins: int, stream: NDArray[np.uint64]) -> NDArray[np.int32]:
    return schemes.named(name).router(bins).route_many(stream)


def run() -> list[Table]:
    return [_compare(skew, bins) for skew, bins in SETTINGS] + [_speed_up()]


def _compare(skew: float, bins: int) -> Table:
    stream, keys = hashes(skew), ranks(skew)
    names = schemes.names()
    best = best_seconds(
        {name: partial(_route, name, bins, stream) for name in names},
        repetitions=2,
    )
    shown = table(
        f"Zipf {skew}, {bins:,} bins, {MESSAGES:,} messages, epsilon 0.01",
        "scheme",
        "imbalance",
        "memory",
        "copies of the hottest key",
        "probes per message",
        "M messages/s",
        "relative to kg",
    )
    for name in names:
        router = schemes.named(name).router(bins)
        copies = metrics.key_copies(keys, router.route_many(stream), bins)
        shown.add_row(
            name,
            f"{metrics.normalized_imbalance(router.loads):.4f}",
            f"{copies.mean():.2f}",
            f"{copies[0]:,}",
            f"{router.probes / MESSAGES:.2f}",
            f"{MESSAGES / best[name] / 1e6:.1f}",
            f"{best['kg'] / best[name]:.3f}",
        )
    return shown


def _speed_up() -> Table:
    shown = table(
        "porc compared with the plain compiled loop of Algorithm 1 (both choose the same bins)",
        "stream",
        "plain, M messages/s",
        "porc, M messages/s",
        "porc / plain",
    )
    mask = seed_mask(0)
    for skew, bins in [*SETTINGS, (0.5, 100), (0.8, 1000), (1.4, 100)]:
        stream = hashes(skew)
        out = np.empty(MESSAGES, np.int32)

        def plain(bins: int = bins, stream: Any = stream, out: Any = out) -> None:
            plain_algorithm_1(stream, mask, 0.01, np.zeros(bins, np.int64), out)

        porc = partial(_route, "porc", bins, stream)
        best = best_seconds({"plain": plain, "porc": porc})
        if not np.array_equal(out, porc()):
            raise AssertionError("porc and the plain loop chose different bins")
        shown.add_row(
            f"Zipf {skew}, {bins:,} bins",
            f"{MESSAGES / best['plain'] / 1e6:.1f}",
            f"{MESSAGES / best['porc'] / 1e6:.1f}",
            f"{best['plain'] / best['porc']:.2f}",
        )
    return shown
