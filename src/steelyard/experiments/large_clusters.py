"""Large clusters: the cost of balancing thousands of workers."""

import math

from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration, MetricValue
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.results import Claim, Results
from steelyard.simulator import Direct, Outcome, Plans

WORKERS = (10, 100, 1000, 10_000)
SOURCES = (1, 10, 100, 1000)
VIRTUAL = 20
PER_WORKER = 600
"""The mean number of messages per slot and worker; a slow worker gets at least 200."""
SLOTS = 40
REPORT_BYTES = 5
"""The size of a report: a slot number of four bytes, and a signal."""


def configurations(scale: Scale) -> list[Configuration]:
    """Return configurations of many workers with one source, and of many sources.

    The configurations with many sources have 100 workers. Plans run on many workers too.
    """
    most = 100 if scale.is_small else 10_000
    made = []
    for workers in WORKERS:
        if workers <= most:
            made += [_delegated(workers, 1), _planned(workers)]
    made += [_delegated(100, sources) for sources in SOURCES if 1 < sources <= max(10, most // 10)]
    return made


def _delegated(workers: int, sources: int) -> Configuration:
    stream = paper_setup.constant(workers * PER_WORKER * SLOTS, SLOTS)
    return Configuration(
        "scale",
        scheme=paper_setup.STEADY,
        stream=stream,
        cluster=paper_setup.cluster(stream, workers, fast=workers * 3 // 10, times=5),
        grouping=paper_setup.consistent(paper_setup.STEADY, VIRTUAL),
        cluster_name="3 of 10 are 5 times as fast",
        settings=paper_setup.settings(60.0, sources=sources),
        measure=control,
    )


def _planned(workers: int) -> Configuration:
    stream = paper_setup.constant(workers * PER_WORKER * SLOTS, SLOTS)
    return Configuration(
        "scale",
        scheme="plans",
        stream=stream,
        cluster=paper_setup.cluster(stream, workers),
        grouping=Direct(Plans(paper_setup.EPSILON, max(8192, 8 * workers), paper_setup.DECAY)),
        settings=paper_setup.settings(60.0),
        measure=control,
    )


def control(_: Configuration, outcome: Outcome) -> list[MetricValue]:
    """Return the size of the control messages, and the imbalance at the end."""
    last = outcome.every(outcome.slot).utilization[-10:].mean(axis=0)
    settled = outcome.converged_after(over=5)
    measured = [
        MetricValue("slots_to_settle", math.nan if settled is None else float(settled)),
        MetricValue("signals_per_slot", float(outcome.signals.mean())),
        MetricValue("control_bytes_per_slot", float(outcome.signals.mean() * REPORT_BYTES)),
        MetricValue("late_imbalance", float(last.max() / last.mean() - 1)),
    ]
    if outcome.plan is not None:
        size = len(outcome.plan.to_json())
        measured += [
            MetricValue("plan_bytes", float(size)),
            MetricValue("control_bytes_per_slot", float(size)),
        ]
    return [m for m in measured if m.value or m.metric != "control_bytes_per_slot"]


def claims(results: Results) -> list[Claim]:
    """Test how convergence, signals, memory and plans grow with the cluster."""
    cg = {"scheme": paper_setup.STEADY, "sources": 1}
    slots = results.by("workers", "slots_to_settle", **cg)
    signals = results.by("workers", "signals_per_slot", **cg)
    sizes = results.by("workers", "plan_bytes", scheme="plans")
    by_source = results.by("sources", "slots_to_settle", scheme=paper_setup.STEADY, workers=100)
    memory = results.by("sources", "memory", scheme=paper_setup.STEADY, workers=100)
    planned = results.by("workers", "late_imbalance", scheme="plans")
    delegated = results.by("workers", "late_imbalance", **cg)
    whole = results.totals("slots_to_settle", **cg)["value"]
    return [
        Claim(
            "Consistent grouping converges on clusters of up to 10,000 workers, with one signal "
            "per worker, source and slot",
            "Scale",
            f"slots to converge by workers: {paper_setup.listed(slots, '.0f')}; signals per slot: "
            f"{paper_setup.listed(signals, ',.0f')}; imbalance in the last 10 slots: "
            f"{paper_setup.listed(delegated)}",
            bool(whole.notna().all()),
            ours=True,
        ),
        Claim(
            "Many sources converge too, but need more memory",
            "Scale",
            f"slots to converge by sources: {paper_setup.listed(by_source, '.0f')}; memory: "
            f"{paper_setup.listed(memory, '.2f')}",
            bool(by_source.notna().all()),
            why="With 1,000 sources each source sends 60 messages per slot to 100 workers, and "
            "gets signals from fewer than half of them.",
            ours=True,
        ),
        Claim(
            "A plan grows with the number of buckets",
            "Scale",
            f"JSON bytes by workers: {paper_setup.listed(sizes, ',.0f')}; imbalance in the last 10 "
            f"slots: {paper_setup.listed(planned)}",
            None,
            why="With 600 messages per slot and worker, random variation alone puts one of 10,000 "
            "workers about 15 % above the mean in a slot.",
            ours=True,
        ),
    ]


EXPERIMENT = Experiment(
    name="scale",
    title="Up to 10,000 workers and 1,000 sources",
    said="Not in the paper: imbalance, memory, signals, control bytes and slots to converge of "
    "growing clusters.",
    configurations=configurations,
    panels=(
        Panel("slots_to_settle", "workers", "slots to converge, means over 5", "workers",
              "1 source", log="x", where={"sources": 1, "scheme": paper_setup.STEADY}),
        Panel("control_bytes_per_slot", "workers", "control bytes per slot", "workers", "1 source",
              log="xy", where={"sources": 1}),
        Panel("memory", "workers", "memory, copies per key", "workers", "1 source",
              log="xy", where={"sources": 1}),
        Panel("slots_to_settle", "sources", "slots to converge, means over 5", "sources",
              "100 workers", log="x", where={"workers": 100, "scheme": paper_setup.STEADY}),
        Panel("signals_per_slot", "sources", "signals per slot", "sources", "100 workers",
              log="xy", where={"workers": 100, "scheme": paper_setup.STEADY}),
        Panel("memory", "sources", "memory, copies per key", "sources", "100 workers",
              log="x", where={"workers": 100, "scheme": paper_setup.STEADY}),
    ),
    claims=claims,
)  # fmt: skip
