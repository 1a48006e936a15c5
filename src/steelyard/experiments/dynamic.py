"""Machines whose speeds change while the stream runs."""

from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration, series
from steelyard.experiments.experiment import Experiment, Scale
from steelyard.experiments.over_time import growth, panels
from steelyard.experiments.results import Claim, Results

WORKERS, VIRTUAL = 10, 100
SHOWN = ("KG", "SG", paper_setup.PAPER, paper_setup.STEADY, paper_setup.COMPARED)


def configurations(scale: Scale) -> list[Configuration]:
    """Return configurations that change from {3,5} to {5,4} and to {2,10}.

    The changes are after 6/22 and 12/22 of the messages.
    """
    made = []
    for stream in paper_setup.both(scale):
        slot = paper_setup.slot(stream)
        cluster = (
            paper_setup.cluster(stream, WORKERS, 3, 5)
            .then(fast=5, times=4, at_message=stream.messages * 6 // 22)
            .then(fast=2, times=10, at_message=stream.messages * 12 // 22)
        )
        made += [
            Configuration(
                "dynamic",
                scheme=name,
                stream=stream,
                cluster=cluster,
                grouping=grouping,
                cluster_name="{3,5} {5,4} {2,10}",
                settings=paper_setup.settings(slot, paper_setup.tick(slot, stream)),
                measure=series,
            )
            for name, grouping in paper_setup.groupings(VIRTUAL, *SHOWN).items()
        ]
    return made


def claims(results: Results) -> list[Claim]:
    """Test whether CG adapts to the changes."""
    made = []
    for dataset in ("wp", "zf"):
        late = {s: results.value("latency_p99", dataset=dataset, scheme=s) for s in SHOWN}
        spread = {
            s: growth(results, "utilization_max_min", dataset=dataset, scheme=s) for s in SHOWN
        }
        latency = ", ".join(f"{s} {v:,.0f}" for s, v in late.items())
        apart = ", ".join(f"{s} {v:.2f}" for s, v in spread.items())
        made += [
            Claim(
                f"{dataset}: CG adapts very efficiently to changing resources",
                "Q3, dynamic",
                f"p99 latency, s: {latency}; utilization, max - min, in the last tenth of the "
                f"time: {apart}",
                late[paper_setup.PAPER] < min(late["KG"], late["SG"]) / 2
                and spread[paper_setup.PAPER] < min(spread["KG"], spread["SG"]) / 2,
                why="The paper's rules move one virtual worker per pair of workers and slot. With "
                "100 virtual workers per worker it takes more than a hundred slots to follow a "
                "change, and queues grow meanwhile."
                + (
                    " The second change is in the peak hours. The load is above 100 % and no "
                    "worker is idle, so neither set of rules moves much until the evening."
                    if dataset == "wp"
                    else ""
                ),
            ),
            Claim(
                f"{dataset}: the steady rules adapt faster than the paper's rules",
                "Q3, dynamic",
                f"p99 latency: paper's rules {late[paper_setup.PAPER]:,.0f} s, steady rules "
                f"{late[paper_setup.STEADY]:,.0f} s",
                late[paper_setup.STEADY] < late[paper_setup.PAPER],
                ours=True,
            ),
            Claim(
                f"{dataset}: comparison with the fair load lets the steady rules adapt at any load",
                "Q3, dynamic",
                f"p99 latency {late[paper_setup.COMPARED]:,.0f} s",
                late[paper_setup.COMPARED] <= late[paper_setup.STEADY],
                ours=True,
            ),
        ]
    return made


EXPERIMENT = Experiment(
    name="dynamic",
    title="Machines that change speed",
    said="After 6 and 12 million messages the speeds of the machines change; CG adapts very "
    "efficiently.",
    configurations=configurations,
    panels=(
        *panels({"dataset": "wp"}, "wp, 100 virtual workers per worker"),
        *panels({"dataset": "zf"}, "zf, constant rate"),
    ),
    claims=claims,
)
