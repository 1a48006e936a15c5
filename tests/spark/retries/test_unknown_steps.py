"""Unknown steps, unknown functions and plans that cannot be parsed make columns doubtful."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.spark.retries import known_functions as known
from steelyard.spark.retries.lineage import SOURCES, Lineage
from steelyard.spark.retries.plan_text import Step, analyzed_plan
from steelyard.spark.retries.steps import STEPS


def text_of(lines):
    """The text of EXPLAIN for a plan."""
    plan = "\n".join(lines)
    return (
        f"== Analyzed Logical Plan ==\nid: bigint\n{plan}\n"
        f"\n== Optimized Logical Plan ==\n{plan}\n\n== Physical Plan ==\nLocalTableScan [id#1L]\n"
    )


def deterministic(lines):
    """The numbers of the deterministic columns; None if the plan cannot be parsed."""
    plan = analyzed_plan(text_of(lines))
    rows = None if plan is None else Lineage().rows(plan)
    if rows is None or rows.ids is None:
        return None
    return {number for number in rows.ids if rows.doubt(number) is None}


names = st.from_regex(r"[A-Z][A-Za-z]{2,20}", fullmatch=True)


@given(names.filter(lambda name: name not in {*STEPS, *SOURCES}))
def test_unknown_steps_make_all_columns_doubtful(name):
    """Known steps after an unknown one do not remove the doubt."""
    below = ["Project [id#1L, upper(page#2) AS page#3]", f"+- {name} [id#1L, page#2], true"]
    assert deterministic([*below, "   +- Relation [id#1L,page#2] parquet"]) == set()
    assert deterministic(below) == set()
    known_below = ["Project [id#1L]", "+- Filter isnotnull(id#1L)"]
    assert deterministic([*known_below, "   +- Relation [id#1L,page#2] parquet"]) == {1}


@given(st.from_regex(r"[a-z][a-z_]{2,20}", fullmatch=True))
def test_the_result_of_an_unknown_function_is_doubtful(name):
    """The other columns of the step stay deterministic."""
    lines = [f"Project [id#1L, {name}(page#2) AS made#3]", "+- Relation [id#1L,page#2] parquet"]
    trusted = known.FUNCTIONS | known.BY_POSITION
    assert deterministic(lines) == ({1, 3} if name in trusted else {1})


@pytest.mark.parametrize(
    "lines",
    [
        ["'Project [id#1L]", "+- Relation [id#1L] parquet"],
        ["Project [id#1L]"],
        ["Project [id#1L]", "Relation [id#1L] parquet"],
        ["Project [concat(id#1L, )) AS a#2]", "+- Relation [id#1L] parquet"],
        ["Project [id#1L, ... 3 more fields]", "+- Relation [id#1L] parquet"],
        ["Union false, false", ":- Relation [id#1L] parquet", "+- Relation [id#2L,n#3] parquet"],
        ["Join Inner, (id#1L = id#2L)", "+- Relation [id#1L] parquet"],
        ["Relation parquet"],
        [],
    ],
)
def test_a_plan_that_cannot_be_parsed_is_doubtful(lines):
    """Its text is incomplete or malformed."""
    assert not deterministic(lines)


def test_an_incomplete_text_is_not_parsed():
    """The physical plan is the last part; a text without it is incomplete."""
    text = text_of(["Relation [id#1L] parquet"])
    assert analyzed_plan(text) is not None
    assert analyzed_plan(text.partition("== Physical")[0]) is None


def test_each_known_function_is_in_one_set():
    """Names are lower-case identifiers."""
    kinds = [known.FUNCTIONS, known.GENERATORS, known.AGGREGATES, known.RANKS]
    kinds += [known.BY_ORDER, known.BY_POSITION]
    names = [name for kind in kinds for name in kind]
    assert sorted(names) == sorted(set(names))
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)


def test_indentation_distinguishes_children_from_subqueries():
    """A subquery is indented by one more level than a child."""
    plan = analyzed_plan(
        text_of(
            [
                "Filter (id#1L < scalar-subquery#4 [])",
                ":  +- Aggregate [max(id#2L) AS m#3L]",
                ":     +- Relation [id#2L] parquet",
                "+- Relation [id#1L] parquet",
            ]
        )
    )
    inner = Step("Aggregate", "[max(id#2L) AS m#3L]", [Step("Relation", "[id#2L] parquet")])
    outer = Step("Relation", "[id#1L] parquet")
    assert plan == Step("Filter", "(id#1L < scalar-subquery#4 [])", [outer], [inner])
