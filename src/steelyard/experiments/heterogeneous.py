"""Machines of unequal speed: y of ten are z times as fast as the others."""

from steelyard.experiments import settings
from steelyard.experiments.configuration import Configuration, Measured, series
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.over_time import growth, panels
from steelyard.experiments.results import Claim, Results
from steelyard.simulator import Outcome

WORKERS, VIRTUAL = 10, 10
FAST, TIMES = 3, 5
SHOWN = ("KG", "SG", settings.PAPER, settings.STEADY)


def configurations(scale: Scale) -> list[Configuration]:
    """{3,5} over time; all {y,z} by their totals."""
    grid = (
        [(y, z) for y in (1, 3, 5, 9) for z in (2, 5, 10)]
        if scale.is_small
        else [(y, z) for y in range(1, WORKERS) for z in range(2, 11)]
    )
    made = []
    for stream in settings.both(scale):
        slot = settings.slot(stream)
        for y, z in grid if stream.name == "wp" else [(FAST, TIMES)]:
            is_shown = (y, z) == (FAST, TIMES)
            made += [
                Configuration(
                    "heterogeneous",
                    scheme=name,
                    stream=stream,
                    cluster=settings.cluster(stream, WORKERS, y, z),
                    grouping=grouping,
                    cluster_name=settings.machines(y, z),
                    slot=slot,
                    tick=settings.tick(slot, stream) if is_shown else None,
                    measure=series_and_overload if is_shown else None,
                )
                for name, grouping in settings.groupings(VIRTUAL, *SHOWN).items()
            ]
    return made


def series_and_overload(configuration: Configuration, outcome: Outcome) -> list[Measured]:
    """Everything over time, and whether overloaded workers own too many virtual workers."""
    return series(configuration, outcome) + overloaded(configuration, outcome)


def overloaded(configuration: Configuration, outcome: Outcome) -> list[Measured]:
    """Of the workers with more than (1 + epsilon) of their fair load, those that own enough.

    The analysis says that all of them own at least their optimal number of virtual workers.
    """
    epsilon = float(getattr(configuration.grouping.scheme, "epsilon", 0.0))
    by_slot = outcome.every(outcome.slot)
    arrivals, capacity = by_slot.tally.arrivals[:-1], by_slot.capacity
    loads = arrivals / arrivals.sum(axis=1, keepdims=True).clip(min=1)
    fair = capacity / capacity.sum(axis=1, keepdims=True)
    # What was owned while a slot lasted is known at its end; slots with moves are left out.
    still = (outcome.moves[: loads.shape[0]] == 0)[:, None]
    over = (loads >= (1 + epsilon) * fair) & still
    owned = outcome.owned[: loads.shape[0]]
    optimal = fair * owned.sum(axis=1, keepdims=True)
    enough = (owned >= optimal) & over
    return [Measured("overloaded_that_own_enough", float(enough.sum() / max(over.sum(), 1)))]


def claims(results: Results) -> list[Claim]:
    """The shown cell, the table, and the analysis' thresholds."""
    made = []
    cell = settings.machines(FAST, TIMES)
    for dataset in ("wp", "zf"):
        own = {"dataset": dataset, "cluster": cell}
        queue = {s: growth(results, "queue_length_max_min", scheme=s, **own) for s in SHOWN}
        late = {s: results.value("latency_p99", scheme=s, **own) for s in SHOWN}
        balance = {s: growth(results, "utilisation_max_min", scheme=s, **own) for s in SHOWN}
        enough = results.value("overloaded_that_own_enough", scheme=settings.PAPER, **own)
        made += [
            Claim(
                f"{dataset}, {cell}: queues and latency grow under KG and SG, and are lower "
                "under CG",
                "Q2, heterogeneous",
                f"queue, max - min, in the last tenth: {_of(queue)}; p99 latency: {_of(late)} s",
                all(
                    queue[cg] < min(queue["KG"], queue["SG"])
                    and late[cg] < min(late["KG"], late["SG"])
                    for cg in (settings.PAPER, settings.STEADY)
                ),
                why="The peak hours bring more than the whole cluster can do, so that queues "
                "grow under every scheme and drain at night. There everybody is busy, and the "
                "steady rules hold still in a worse place than the paper's."
                if dataset == "wp"
                else "",
            ),
            Claim(
                f"{dataset}, {cell}: CG keeps the imbalance close to zero",
                "Q2, heterogeneous",
                f"utilisation, max - min, in the last tenth: {_of(balance, '.2f')}",
                balance[settings.STEADY] < 0.25,
                why="With 10 virtual workers one of them is 18 % of what a slow machine can do: "
                "shares cannot be closer than that.",
            ),
            Claim(
                f"{dataset}, {cell}: a worker with more than theta_b times its fair load, "
                "theta_b = 1 + epsilon, owns at least its optimal number of virtual workers",
                "Analysis, fair assignment",
                f"{enough:.1%} of such workers and slots do",
                enough >= 0.95,
                why="The paper writes theta_b = 1 + epsilon n alpha with an absolute epsilon; for "
                "a PoRC epsilon that is relative to the mean this is 1 + epsilon. PoRC bounds "
                "what a virtual worker got since the start; in a single slot it may get more.",
            ),
        ]
    table = results.totals("latency_p99", dataset="wp").pivot_table(
        index="cluster", columns="scheme", values="value"
    )
    better = {
        cg: int((table[cg] < table[["KG", "SG"]].min(axis=1)).sum())
        for cg in (settings.PAPER, settings.STEADY)
    }
    made.append(
        Claim(
            "wp: the same for all y and z",
            "Q2, heterogeneous",
            f"p99 latency below KG's and SG's in {better[settings.PAPER]} (paper's rules) and "
            f"{better[settings.STEADY]} (steady rules) of {len(table)} clusters",
            min(better.values()) == len(table),
            why="Where one machine is twice as fast, SG is nearly fair already, and a virtual "
            "worker, a tenth of a worker, is more than a share is off by.",
        )
    )
    return made


def _of(values: dict[str, float], form: str = ",.0f") -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


EXPERIMENT = Experiment(
    name="heterogeneous",
    title="Unequal machines",
    said="Queue length and latency grow for KG and SG and their imbalance is high; CG keeps queue "
    "length and latency low and the imbalance close to zero, for all y and z.",
    configurations=configurations,
    panels=(
        *panels({"dataset": "wp", "cluster": settings.machines(FAST, TIMES)}, "wp, {3,5}"),
        *(
            Panel("latency_p99", "cluster", "p99 latency, s", "z", f"wp, {name}", kind="heat",
                  where={"dataset": "wp", "scheme": name}, log_y=True)
            for name in ("KG", "SG", settings.STEADY)
        ),
    ),
    claims=claims,
)  # fmt: skip
