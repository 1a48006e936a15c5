"""Every experiment at a fiftieth of the full size: its files, its values and its claims."""

import re
from pathlib import Path

import matplotlib.image
import pandas as pd
import pytest

from steelyard import experiments
from steelyard.experiments.execution import ResultStore, finished, reproduce
from steelyard.experiments.results import COLUMNS

pytestmark = pytest.mark.slow
EPSILON = 0.01
PAPERS = ("data-rate", "balls-and-bins", "epsilon", "allocation", "homogeneous", "heterogeneous",
          "sources", "virtual-workers", "dynamic")  # fmt: skip


@pytest.mark.parametrize("name", experiments.names())
def test_every_experiment_writes_its_table_and_its_figure(reproduced, name):
    """The table is written as CSV and Parquet, the figure as PNG and SVG."""
    table = pd.read_csv(reproduced.folder / f"{name}.csv")
    assert COLUMNS == list(table.columns)
    assert set(table["experiment"]) == {name}
    assert len(pd.read_parquet(reproduced.folder / f"{name}.parquet")) == len(table) > 10
    picture = matplotlib.image.imread(reproduced.folder / f"{name}.png")
    assert picture.shape[0] > 300
    assert picture[..., :3].std() > 0.05
    assert "<svg" in (reproduced.folder / f"{name}.svg").read_text("utf-8")[:2000]


def test_schemes_keep_their_bounds(reproduced):
    """PoRC and CH stay within epsilon and a message; KG and PKG exceed their lower bounds."""
    table = reproduced.results["balls-and-bins"]
    wide = table.table.pivot_table(
        index=["scheme", "workers", "skew"], columns="metric", values="value"
    ).reset_index()
    message = wide["workers"] / wide["messages"]
    bounded = wide["scheme"].isin(["PoRC", "CH", "PoRC graded"])
    assert (wide["imbalance"] - message)[bounded].max() <= EPSILON + 1e-9
    for scheme, choices in (("KG", 1), ("PKG", 2)):
        own = wide["scheme"] == scheme
        excess = wide["imbalance"] - (wide["workers"] * wide["p1"] / choices - 1)
        assert excess[own].min() >= -1e-9
    assert (wide["memory"][wide["scheme"] == "KG"] == 1).all()
    assert (wide["memory"][wide["scheme"] == "PKG"] <= 2).all()
    porc = wide["scheme"] == "PoRC"
    assert (wide["memory"] / wide["memory_lower_bound"])[porc].min() >= 0.98
    assert wide["imbalance"][wide["scheme"] == "SG"].max() <= message.max()


@pytest.mark.parametrize("workers", [10, 100, 1000])
def test_memory_is_ordered_as_the_paper_says(reproduced, workers):
    """KG needs the least memory, then PoRC, then CH, then SG."""
    results = reproduced.results["balls-and-bins"].where(workers=workers)
    memory = {s: results.by("skew", "memory", scheme=s) for s in ("KG", "PoRC", "CH", "SG")}
    assert (memory["KG"] <= memory["PoRC"]).all()
    assert (memory["PoRC"] < memory["CH"]).all()
    assert (memory["CH"] < memory["SG"]).all()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("balls-and-bins", "PoRC is at most epsilon"),
        ("balls-and-bins", "KG and PKG grows"),
        ("balls-and-bins", "needs at least ceil"),
        ("epsilon", "wp: a small epsilon gives a low imbalance"),
        ("epsilon", "zf: the memory of CG over PoRC lies between"),
        ("allocation", "wp: KG and PKG have a high imbalance"),
        ("allocation", "wp: PoTC and SG are nearly perfectly"),
        ("allocation", "zf: CH and PoRC bound the imbalance"),
        ("allocation", "wp: PoRC needs less memory than CH"),
        ("homogeneous", "wp: KG has the worst imbalance"),
        ("homogeneous", "wp: PKG is nearly perfectly balanced with 5 and 10"),
        ("homogeneous", "zf: the differences between workers in queue length"),
        ("heterogeneous", "wp, {3,5}: queue length and latency grow"),
        ("delegation", "The steady rules converge"),
        ("drift", "zf: a scheme with decaying loads"),
    ],
)
def test_claims_that_hold_at_any_scale_agree(reproduced, name, said):
    """These claims do not need the full size."""
    (claim,) = [claim for claim in reproduced.claims[name] if said in claim.said]
    assert claim.agrees, claim.measured


def test_the_paper_rules_do_not_converge_everywhere(reproduced):
    """With 100 virtual workers per worker, only the steady rules converge on {2,10}."""
    slots = reproduced.results["delegation"].where(cluster="{2,10}", virtual_workers=100, sources=1)
    assert slots.totals("slots_to_converge", scheme="paper's rules")["value"].isna().all()
    assert slots.value("slots_to_converge", scheme="steady rules") < 40


def test_every_experiment_of_the_paper_tests_a_claim(reproduced):
    """Each experiment but the data rate has a claim of the paper with a verdict."""
    for name in PAPERS:
        said = [claim for claim in reproduced.claims[name] if not claim.ours]
        assert said, name
        assert name == "data-rate" or any(claim.agrees is not None for claim in said), name


def test_the_page_needs_no_other_file(reproduced):
    """The page contains all figures and has no link to another file."""
    page = (reproduced.folder / "report.html").read_text("utf-8")
    assert page.count("data:image/png;base64,") == len(experiments.names())
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    for name in experiments.names():
        assert f'id="{name}"' in page
    assert "0.02 of the full size" in page


def test_the_claims_are_written_as_a_table(reproduced):
    """Each claim has one row, and each row has five cells."""
    rows = [r for r in (reproduced.folder / "claims.md").read_text("utf-8").splitlines() if r]
    cells = [len(re.split(r"(?<!\\)\|", row)) for row in rows if row.startswith("|")]
    assert set(cells) == {7}
    assert len(cells) >= 40


@pytest.mark.filterwarnings("ignore:.*is damaged and ignored")
def test_finished_configurations_are_not_run_again(spark, reproduced):
    """Only the missing configuration is run, and a damaged part is ignored."""
    chosen = [experiments.named(name) for name in ("epsilon", "dynamic")]
    store = ResultStore(reproduced.folder, "dynamic")
    table = store.read()
    lost = table["configuration"].unique()[3]
    path = reproduced.folder / "dynamic.parquet"
    table[table["configuration"] != lost].to_parquet(path)
    done = []
    (reproduced.folder / "parts" / "dynamic").mkdir(parents=True, exist_ok=True)
    (reproduced.folder / "parts" / "dynamic" / "cut.parquet").write_bytes(b"PAR1 cut short")
    again = reproduce(spark, chosen, reproduced.folder, reproduced.scale, done.append)
    total = sum(len(e.configurations(reproduced.scale)) for e in chosen)
    assert done == [total - 1, 1]
    pd.testing.assert_frame_equal(again["dynamic"].table, reproduced.results["dynamic"].table)


def test_results_of_another_scale_are_kept(spark, reproduced):
    """After a run at another scale, no configuration of the first scale is run again."""
    chosen = [experiments.named("dynamic")]
    other = experiments.Scale(0.01)
    reproduce(spark, chosen, reproduced.folder, other)
    assert finished(reproduced.folder, other, ["dynamic"])
    done = []
    reproduce(spark, chosen, reproduced.folder, reproduced.scale, done.append)
    assert done == [len(chosen[0].configurations(reproduced.scale))]
    assert set(finished(reproduced.folder, reproduced.scale, experiments.names())) == set(
        experiments.names()
    )


@pytest.mark.parametrize(
    ("name", "said", "change"),
    [
        ("balls-and-bins", "PoRC is at most", ("imbalance", {"scheme": "PoRC"}, 1.05)),
        ("balls-and-bins", "PoTC is a few", ("imbalance", {"scheme": "PoTC"}, 50)),
        ("balls-and-bins", "PKG has at most two", ("memory", {"scheme": "PKG"}, 3)),
        ("balls-and-bins", "at least ceil", ("memory", {"scheme": "PoRC"}, 0.3)),
        ("epsilon", "wp: the memory", ("memory", {"scheme": "CG over PoRC"}, 3)),
        (
            "allocation",
            "wp: KG and PKG have",
            ("imbalance", {"scheme": "KG", "workers": 100}, 0.01),
        ),
        ("allocation", "wp: PoTC and SG", ("imbalance", {"scheme": "PoTC"}, 1000)),
        ("allocation", "zf: CH and PoRC", ("imbalance", {"scheme": "CH"}, 1.5)),
        ("homogeneous", "wp: KG has the worst", ("imbalance", {"scheme": "PKG"}, 1000)),
        ("homogeneous", "wp: PKG is nearly", ("imbalance", {"scheme": "PKG", "workers": 5}, 1e6)),
        ("homogeneous", "wp: CH needs less", ("memory", {"scheme": "SG"}, 0.1)),
        ("heterogeneous", "wp, {3,5}: queue length", ("latency_p99", {"scheme": "CG"}, 1000)),
        ("heterogeneous", "wp: CG performs better", ("latency_p99", {"scheme": "CG"}, 1000)),
        ("delegation", "The steady rules", ("slots_to_converge", {"scheme": "steady rules"}, None)),
    ],
)
def test_a_claim_fails_with_contrary_results(reproduced, name, said, change):
    """The verdict changes when the results contradict the claim."""
    metric, where, factor = change
    table = reproduced.results[name].table.copy()
    rows = table["metric"] == metric
    for column, value in where.items():
        rows &= table[column] == value
    assert rows.any()
    table.loc[rows, "value"] = float("nan") if factor is None else table["value"][rows] * factor
    made = experiments.named(name).claims(experiments.Results(table))
    (claim,) = [claim for claim in made if said in claim.said]
    assert claim.agrees is False, claim.measured


def test_every_claim_is_in_the_documentation(reproduced):
    """Each claim has a row in the documentation, with the numbers of the full size."""
    documented = (Path(__file__).parents[2] / "docs" / "paper-claims.md").read_text("utf-8")
    for name, made in reproduced.claims.items():
        for claim in made:
            assert f"| {claim.said} | {claim.section}; {name} |" in documented
