"""Draw the figure of docs/how-it-works.md: scripts/flow_figure.py FOLDER.

Counts of keys enter; a figure of the plan and of the assignment after delegation leaves.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steelyard import Assignment, Measurement, Planner, RoutingPlan, SteadyRules, hash_keys
from steelyard.hashing import buckets_of

MESSAGES, KEYS, HOT = 60_000, 2_000, 0.3
"""The messages per slot, the number of keys, and the share of the hottest key; the other keys have
equal shares."""
SPEEDS = np.array([1.0, 0.4, 1.0])
"""The speeds of three workers, one of which is slow."""
EACH, SLOTS = 20, 40
"""The virtual workers of each worker at the start, and the number of slots."""
LOAD = 0.8
"""The load, as a fraction of the capacity of all workers."""

ORANGE, BLUE, GRAY = "#D55E00", "#56B4E9", "#666666"


def main(folder: Path) -> Path:
    """Draw the figure, and return its path."""
    buckets = buckets_of(hash_keys([f"key {i}" for i in range(KEYS)]), 8192)
    counts = np.bincount(buckets[1:], minlength=8192) * (1 - HOT) * MESSAGES / (KEYS - 1)
    counts[buckets[0]] += HOT * MESSAGES
    planner = Planner(bins=EACH * SPEEDS.size)
    by_key = planner.plan
    plan = planner.update(counts)
    first, last = Assignment.equal(SPEEDS.size, EACH), delegated(plan)

    figure = Figure(figsize=(9, 4.6), layout="constrained", facecolor="white")
    left, right = figure.subfigures(1, 2, wspace=0.05)
    left.suptitle("A source chooses a virtual worker", fontsize=11)
    right.suptitle("Workers own virtual workers, and hand them on", fontsize=11)
    hot = int(buckets[0])
    bars(left.subplots(2, 1, sharex=True), (by_key, plan), counts, hot)
    blocks(right.subplots(2, 1), (first, last), plan, hot)
    path = folder / "how-it-works.png"
    figure.savefig(path, dpi=120, metadata={"Software": None}, pil_kwargs={"optimize": True})
    return path


def delegated(plan: RoutingPlan) -> Assignment:
    """Return the assignment after the workers have reported for `SLOTS` slots."""
    rules = SteadyRules()
    source = rules.source(Assignment.equal(SPEEDS.size, EACH))
    sides = [rules.worker(slot=1.0) for _ in SPEEDS]
    times = SPEEDS.sum() * LOAD / (MESSAGES * SPEEDS)
    for slot in range(1, SLOTS + 1):
        owners = source.assignment.owners
        arrivals = np.bincount(owners, plan.shares, SPEEDS.size) * MESSAGES
        owned = [source.assignment.count(worker) for worker in range(SPEEDS.size)]
        for worker, side in enumerate(sides):
            seen = Measurement(float(arrivals[worker]), service_time=float(times[worker]))
            report = side.report(seen, owned[worker], now=float(slot))
            if report is not None:
                source.acknowledge(worker, report)
    return source.assignment


def bars(
    axes: tuple[Axes, Axes], plans: tuple[RoutingPlan, RoutingPlan], counts: np.ndarray, hot: int
) -> None:
    """Draw the load of each virtual worker, in multiples of its share, with the hot key marked."""
    titles = ("by key grouping", "by the power of random choices")
    for ax, plan, title in zip(axes, plans, titles, strict=True):
        fair = counts.sum() / plan.bins
        of_hot = np.zeros(plan.bins)
        for cell in plan.cells(hot):
            of_hot[cell.bin] += cell.weight * counts[hot] / fair
        bucket = np.repeat(np.arange(plan.buckets), plan.copies)
        loads = np.bincount(plan.bins_of, counts[bucket] * plan.weights, plan.bins) / fair
        ax.bar(range(plan.bins), loads, width=0.85, color=BLUE)
        ax.bar(range(plan.bins), of_hot, width=0.85, color=ORANGE, label="the hottest key")
        ax.axhline(1, color=GRAY, linewidth=0.8, linestyle="dotted")
        ax.set_title(title, fontsize=9)
        ax.set_ylabel("of its share", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
        ax.set_xlim(-1, plan.bins)
    axes[0].legend(fontsize=8, frameon=False)
    axes[1].set_xlabel("virtual workers", fontsize=9)


def blocks(
    axes: tuple[Axes, Axes],
    assignments: tuple[Assignment, Assignment],
    plan: RoutingPlan,
    hot: int,
) -> None:
    """Draw a block for each virtual worker, in the row of its owner."""
    has_hot = {cell.bin for cell in plan.cells(hot)}
    titles = ("at first", f"after {SLOTS} slots of signals")
    most = max(a.count(w) for a in assignments for w in a.workers)
    for ax, assignment, title in zip(axes, assignments, titles, strict=True):
        names = []
        for worker, speed in enumerate(SPEEDS):
            owned = assignment.owned(worker)
            share = float(plan.shares[owned].sum())
            busy = share * SPEEDS.sum() * LOAD / speed
            names.append(f"worker {worker + 1}, speed {speed:g}\n{share:.0%}, busy {busy:.0%}")
            for column, virtual in enumerate(sorted(owned)):
                color = ORANGE if virtual in has_hot else BLUE
                ax.barh(worker, 0.8, left=column, height=0.55, color=color)
        ax.set_yticks(range(SPEEDS.size), names, fontsize=8)
        ax.invert_yaxis()
        ax.set_xlim(0, most)
        ax.set_xticks([])
        ax.set_title(title, fontsize=9)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
