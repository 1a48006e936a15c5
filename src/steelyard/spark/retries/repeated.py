"""What is the same when a task is run again: the order of a frame's rows, and what is in them.

A frame enters; what Spark's EXPLAIN lets one conclude of it leaves.
"""

import io
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from steelyard.spark.retries.column_types import types_within
from steelyard.spark.retries.lineage import Lineage
from steelyard.spark.retries.plan_facts import PlanFacts, facts_of_frame, facts_of_query
from steelyard.spark.retries.plan_text import CUT, Step, analyzed_plan, physical_plan
from steelyard.spark.retries.rows import Doubt, Rows

_REPEATING = {
    "ColumnarToRow",
    "FileScan",
    "Filter",
    "Generate",
    "LocalTableScan",
    "Project",
    "Range",
    "Sample",
    "Union",
}
"""Steps that give the same rows in the same order, whenever and wherever they are run again."""

_STREAM = re.compile(r"StreamingRelation(?= (FileSource\[|kafka\b|rate\b|rate-micro-batch\b))")
"""Files, Kafka and the rate source give the same rows in the same order again."""

_STEP = re.compile(r"[\s:]*(?:[+:]- )?(?:\*\(\d+\) )?(\w+)")

_FIELDS = "spark.sql.debug.maxToStringFields"
"""How many columns EXPLAIN shows of a step."""

_UNREAD = Doubt("a plan that cannot be read")

_FORGED = Doubt("a plan with a literal or a name that may be taken for a column or a step")

_PRINTING = threading.Lock()


@dataclass(frozen=True)
class Repeated:
    """What of a frame is the same when a task is run again."""

    doubts: Mapping[str, Doubt]
    """The columns whose values may be others, and why."""
    in_order: bool
    """The same rows come in the same order."""

    def in_order_by(self, names: Iterable[str]) -> bool:
        """So do they, and what is decided by these columns is decided alike again."""
        return self.in_order and not any(name in self.doubts for name in names)


def repeated(frame: DataFrame) -> Repeated:
    """Find out what of a frame is the same when a task is run again; no job is run.

    What is not known is not trusted: steps, functions and sources of somebody else's.

    >>> rows = spark.range(10).selectExpr("id", "id % 3 AS page")
    >>> repeated(rows).in_order, repeated(rows.repartition(2)).in_order
    (True, False)
    >>> repeated(rows.dropDuplicates(["page"])).doubts
    {'id': Doubt(why='dropDuplicates, ...', kind=<Kind.ORDER...)}
    """
    # The step on top has the numbers of all columns, which a range does not show.
    planned = frame.select("*")
    text = _uncut(frame.sparkSession, partial(_explained, planned))
    rows = _rows(text, planned)
    if rows.ids is None or len(rows.ids) != len(frame.columns):
        doubt = rows.others or _UNREAD
        return Repeated(dict.fromkeys(frame.columns, doubt), in_order=False)
    about = zip(frame.columns, map(rows.doubt, rows.ids), strict=True)
    return Repeated(
        {name: doubt for name, doubt in about if doubt is not None},
        rows.ordered and _keeps_order(text),
    )


def repeats_its_order(frame: DataFrame) -> bool:
    """True for what is read straight from files, and filtered or computed row by row.

    Rows that came through a shuffle may come in another order, as may those of a source of somebody
    else's (`BatchScan`).

    >>> repeats_its_order(spark.range(10).selectExpr("id * 2 AS twice"))
    True
    >>> repeats_its_order(spark.range(10).repartition(2))
    False
    """
    return repeated(frame).in_order


def _rows(text: str, frame: DataFrame) -> Rows:
    """What is known of the rows of a plan."""
    facts = facts_of_frame(frame)
    if facts is not None and facts.readable(text) is None:
        return Rows(None, others=_FORGED)
    plan = _read(text, facts)
    if plan is None or facts is None:
        return Rows(None, others=_UNREAD)
    find_rows = partial(_of_query, frame)
    rows = Lineage(types_within(plan, facts.kinds), find_rows).rows(plan)
    if facts.numbers is not None or not rows.doubts:  # all types are known, or none is needed
        return rows
    if rows.ids is None or len(rows.ids) != len(frame.columns):
        return rows
    # Now that the numbers of the columns are known, so are their types.
    kinds = dict(zip(rows.ids, (field.dataType for field in frame.schema.fields), strict=True))
    return Lineage(types_within(plan, kinds), find_rows).rows(plan)


def _read(text: str, facts: PlanFacts | None) -> Step | None:
    """The analyzed plan; None if its text cannot be read."""
    readable = None if facts is None or CUT.search(text) else facts.readable(text)
    return None if readable is None else analyzed_plan(readable)


def _of_query(frame: DataFrame, ids: tuple[int, ...]) -> Rows | None:
    """What is known of a micro-batch in `foreachBatch`: its columns are those of its query.

    Spark hides the plan of a micro-batch there; its query, which is running, shows it.
    """
    sessions = {id(s): s for s in (frame.sparkSession, SparkSession.getActiveSession()) if s}
    for session in sessions.values():
        for query in session.streams.active:
            text = _uncut(session, partial(_printed, partial(query.explain, extended=True)))
            facts = facts_of_query(query)
            plan = _read(text, facts)
            if plan is None or facts is None:
                continue
            rows = Lineage(types_within(plan, facts.kinds)).rows(plan)
            if rows.ids == ids:
                return rows
    return None


def _uncut(session: SparkSession, explain: Callable[[], str]) -> str:
    """What EXPLAIN shows, with all columns."""
    text = explain()
    if CUT.search(text):
        with _all_fields_of(session):
            text = explain()
    return text


def _explained(frame: DataFrame) -> str:
    """The plans of a frame, as Spark prints them.

    Not by EXPLAIN in SQL: that needs a view, and Spark uncaches a frame whose view is dropped.
    """
    return _printed(partial(frame.explain, extended=True))


@contextmanager
def _all_fields_of(session: SparkSession) -> Iterator[None]:
    """EXPLAIN leaves no columns out."""
    before = session.conf.get(_FIELDS, None)
    session.conf.set(_FIELDS, str(2**31 - 1))
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(_FIELDS)
        else:
            session.conf.set(_FIELDS, before)


class _OfThisThread(io.StringIO):
    """Takes what this thread prints; what others print meanwhile goes where it would have gone."""

    def __init__(self) -> None:
        super().__init__()
        self._thread, self._out = threading.get_ident(), sys.stdout

    def write(self, text: str) -> int:
        if threading.get_ident() == self._thread:
            return super().write(text)
        return self._out.write(text)


def _printed(explain: Callable[[], None]) -> str:
    with _PRINTING, redirect_stdout(_OfThisThread()) as printed:
        explain()
        return printed.getvalue()


def _keeps_order(text: str) -> bool:
    lines = physical_plan(text)
    steps = [_STEP.match(_STREAM.sub("FileScan", line)) for line in lines]
    return bool(steps) and all(step is not None and step[1] in _REPEATING for step in steps)
