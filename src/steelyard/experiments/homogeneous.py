"""Consistent grouping compared with the other schemes on machines of equal speed."""

from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration, series
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.over_time import growth, panels
from steelyard.experiments.results import Claim, Results

VIRTUAL = 10
SHOWN = 10
"""The number of workers in the figures over time."""
OTHERS = ("KG", "PKG", "PoTC", "CH", "SG")


def configurations(scale: Scale) -> list[Configuration]:
    """Return configurations of all schemes on all clusters, with series for 10 workers."""
    made = []
    for stream in paper_setup.both(scale):
        slot = paper_setup.slot(stream)
        for workers in paper_setup.WORKERS:
            for name, grouping in paper_setup.groupings(
                VIRTUAL, *OTHERS, paper_setup.PAPER
            ).items():
                is_shown = workers == SHOWN
                made.append(
                    Configuration(
                        "homogeneous",
                        scheme=name,
                        stream=stream,
                        cluster=paper_setup.cluster(stream, workers),
                        grouping=grouping,
                        settings=paper_setup.settings(
                            slot,
                            paper_setup.tick(slot, stream) if is_shown else None,
                            period=slot * 60 if is_shown else None,
                        ),
                        measure=series if is_shown else None,
                    )
                )
    return made


def claims(results: Results) -> list[Claim]:
    """Compare imbalance, memory and queues over time with the paper's statements."""
    made = []
    for dataset in ("wp", "zf"):
        of = {
            (metric, name): results.by("workers", metric, dataset=dataset, scheme=name)
            for metric in ("imbalance", "memory")
            for name in (*OTHERS, "CG")
        }
        others = [of["imbalance", name] for name in OTHERS if name != "KG"]
        is_worst = all((of["imbalance", "KG"] > other).all() for other in others)
        pkg, cg = of["imbalance", "PKG"], of["imbalance", "CG"]
        kg_queue, cg_queue = (
            growth(results, "queue_length_max_min", dataset=dataset, scheme=s) for s in ("KG", "CG")
        )
        kg_late, cg_late = (
            growth(results, "latency_max_min", dataset=dataset, scheme=s) for s in ("KG", "CG")
        )
        spread = {
            s: growth(results, "utilization_max_min", dataset=dataset, scheme=s)
            for s in ("KG", "CG")
        }
        apart = {
            s: float(results.over_time("queue_length_max_avg", dataset=dataset, scheme=s).max())
            for s in ("PKG", "PoTC", "SG")
        }
        partials = {
            name: results.value("aggregation", dataset=dataset, scheme=name, workers=SHOWN)
            for name in ("KG", "CG", "SG")
        }
        made += [
            Claim(
                f"{dataset}: KG has the worst imbalance and the least memory",
                "Q2, homogeneous",
                f"imbalance {paper_setup.listed(of['imbalance', 'KG'])}; memory "
                f"{of['memory', 'KG'].max():.2f}",
                is_worst and bool(of["memory", "KG"].max() < 1.001),
            ),
            Claim(
                f"{dataset}: PKG is nearly perfectly balanced with 5 and 10 workers; its imbalance "
                "grows with more workers",
                "Q2, homogeneous",
                f"imbalance {paper_setup.listed(pkg)}",
                bool(pkg[[5, 10]].max() < 0.01 and pkg[50] > 0.5 and pkg[100] > pkg[50]),
                why="PKG is balanced while p1 is below 2/n, and cannot be balanced above that.",
            ),
            Claim(
                f"{dataset}: CG has a bounded imbalance",
                "Q2, homogeneous",
                f"imbalance {paper_setup.listed(cg)}",
                bool(cg.max() <= 0.1),
                why="Epsilon bounds the imbalance of virtual workers only. Signals in peak hours "
                "move virtual workers, so equal workers may differ by one virtual worker, a tenth "
                "of their load.",
            ),
            Claim(
                f"{dataset}: CH needs less memory than PoTC and SG, and CG less than CH",
                "Q2, homogeneous",
                "; ".join(
                    f"{s} {paper_setup.listed(of['memory', s], '.2f')}"
                    for s in ("SG", "PoTC", "CH", "CG")
                ),
                bool(
                    (of["memory", "CH"] <= of["memory", "PoTC"]).all()
                    and (of["memory", "CH"] <= of["memory", "SG"]).all()
                    and (of["memory", "CG"] <= of["memory", "CH"]).all()
                ),
                why="With few workers every scheme eventually holds most keys on all of them. "
                "Moves of virtual workers leave key copies behind.",
            ),
            Claim(
                f"{dataset}: the differences between workers in queue length and latency grow "
                "under KG and stay small under CG (10 workers)",
                "Q2, homogeneous",
                f"max - min in the last tenth of the time: queue length KG {kg_queue:,.0f}, CG "
                f"{cg_queue:,.0f} messages; latency KG {kg_late:,.0f} s, CG {cg_late:,.1f} s",
                bool(kg_queue > 10 * max(cg_queue, 1) and kg_late > 10 * max(cg_late, 0.1)),
                why="In the peak hours the load exceeds the capacity of the cluster. A worker with "
                "11 virtual workers in place of 10 then falls behind for hours."
                if dataset == "wp"
                else "",
            ),
            Claim(
                f"{dataset}: PoTC and SG are similar: nearly perfect balance, high memory",
                "Q2, homogeneous",
                f"memory PoTC {paper_setup.listed(of['memory', 'PoTC'], '.2f')}; SG "
                f"{paper_setup.listed(of['memory', 'SG'], '.2f')}; largest imbalance PoTC "
                f"{of['imbalance', 'PoTC'].max():.1e}, SG {of['imbalance', 'SG'].max():.1e}",
                bool(
                    ((of["memory", "PoTC"] / of["memory", "SG"] - 1).abs() < 0.05).all()
                    and max(of["imbalance", s].max() for s in ("PoTC", "SG")) < 0.01
                ),
            ),
            Claim(
                f"{dataset}: CH has a bounded imbalance",
                "Q2, homogeneous",
                f"largest imbalance minus epsilon: "
                f"{paper_setup.excess_over_epsilon(results, 'CH', dataset=dataset):+.1e}",
                paper_setup.excess_over_epsilon(results, "CH", dataset=dataset) <= 1e-9,
            ),
            Claim(
                f"{dataset}: CG keeps the imbalance close to zero over time (10 workers)",
                "Q2, homogeneous",
                f"utilization, max - min, in the last tenth of the time: KG {spread['KG']:.2f}, CG "
                f"{spread['CG']:.2f}",
                spread["CG"] < 0.2 and spread["CG"] < spread["KG"] / 2,
            ),
            Claim(
                f"{dataset}: with PKG, PoTC and SG the 10 workers do not differ (in the paper "
                "max - avg is 0)",
                "Q2, homogeneous",
                "queue length, max - avg, largest value of the day: "
                + ", ".join(f"{s} {apart[s]:,.0f}" for s in ("PKG", "PoTC", "SG")),
                max(apart[s] for s in ("PKG", "PoTC", "SG")) < 100,
            ),
            Claim(
                f"{dataset}: CG sends fewer partial states to the aggregator than SG (a period is "
                "60 slots)",
                "Periodic aggregation",
                "partial states sent to the aggregator: "
                + ", ".join(f"{s} {n:,.0f}" for s, n in partials.items()),
                partials["CG"] < partials["SG"],
                ours=True,
            ),
        ]
    return made


EXPERIMENT = Experiment(
    name="homogeneous",
    title="Consistent grouping and other schemes on equal machines",
    said="KG has the worst imbalance and the least memory. PKG is nearly perfectly balanced with "
    "few workers but not with many. PoTC and SG are balanced and need much memory. CG has a "
    "bounded imbalance and needs less memory than CH. Over time, at 80 % load, queue length and "
    "latency grow under KG but not under CG.",
    configurations=configurations,
    panels=(
        Panel("imbalance", "workers", "imbalance", "workers", "wp", kind="bars", log="y",
              where={"dataset": "wp"}),
        Panel("memory", "workers", "memory, copies per key", "workers", "wp", kind="bars",
              where={"dataset": "wp"}, log="y"),
        Panel("latency_p99", "workers", "p99 latency, s", "workers", "wp, 80 % load", kind="bars",
              where={"dataset": "wp"}, log="y"),
        *panels({"dataset": "wp", "workers": SHOWN, "scheme": ["KG", "SG", "CG"]}),
    ),
    claims=claims,
)  # fmt: skip
