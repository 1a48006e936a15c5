"""Plans as text: what is not known, or cannot be read, is never trusted."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.spark.retries import known_functions as known
from steelyard.spark.retries.lineage import SOURCES, Lineage
from steelyard.spark.retries.plan_text import Step, analyzed_plan
from steelyard.spark.retries.steps import STEPS


def text_of(lines):
    """What EXPLAIN shows of a plan."""
    plan = "\n".join(lines)
    return (
        f"== Analyzed Logical Plan ==\nid: bigint\n{plan}\n"
        f"\n== Optimized Logical Plan ==\n{plan}\n\n== Physical Plan ==\nLocalTableScan [id#1L]\n"
    )


def sure_of(lines):
    """The numbers of the columns that are sure; None if it cannot be read."""
    plan = analyzed_plan(text_of(lines))
    rows = None if plan is None else Lineage().rows(plan)
    if rows is None or rows.ids is None:
        return None
    return {number for number in rows.ids if rows.doubt(number) is None}


names = st.from_regex(r"[A-Z][A-Za-z]{2,20}", fullmatch=True)


@given(names.filter(lambda name: name not in {*STEPS, *SOURCES}))
def test_steps_that_are_not_known_are_never_trusted(name):
    """Whatever stands above them, they make everything doubtful."""
    below = ["Project [id#1L, upper(page#2) AS page#3]", f"+- {name} [id#1L, page#2], true"]
    assert sure_of([*below, "   +- Relation [id#1L,page#2] parquet"]) == set()
    assert sure_of(below) == set()
    known_below = ["Project [id#1L]", "+- Filter isnotnull(id#1L)"]
    assert sure_of([*known_below, "   +- Relation [id#1L,page#2] parquet"]) == {1}


@given(st.from_regex(r"[a-z][a-z_]{2,20}", fullmatch=True))
def test_functions_that_are_not_known_are_never_trusted(name):
    """What they make is doubtful, and the columns beside it are not."""
    lines = [f"Project [id#1L, {name}(page#2) AS made#3]", "+- Relation [id#1L,page#2] parquet"]
    trusted = known.FUNCTIONS | known.BY_POSITION
    assert sure_of(lines) == ({1, 3} if name in trusted else {1})


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
def test_what_cannot_be_read_is_never_trusted(lines):
    """Texts that are cut, or that nobody foresaw."""
    assert not sure_of(lines)


def test_a_text_that_is_cut_is_not_read():
    """The physical plan comes last: without it something is missing."""
    text = text_of(["Relation [id#1L] parquet"])
    assert analyzed_plan(text) is not None
    assert analyzed_plan(text.partition("== Physical")[0]) is None


def test_no_function_is_known_in_two_ways():
    """A name has one meaning."""
    kinds = [known.FUNCTIONS, known.GENERATORS, known.AGGREGATES, known.RANKS]
    kinds += [known.BY_ORDER, known.BY_POSITION]
    names = [name for kind in kinds for name in kind]
    assert sorted(names) == sorted(set(names))
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)


def test_a_tree_of_steps():
    """Children and subqueries are told apart by how far they are to the right."""
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
