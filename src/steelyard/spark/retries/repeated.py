"""Report the doubtful columns of a frame, and whether its rows keep their order.

A frame enters; the properties that follow from Spark's EXPLAIN leave. No job runs.
"""

import io
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from steelyard.spark.retries.column_types import types_within
from steelyard.spark.retries.lineage import Lineage
from steelyard.spark.retries.plan_facts import PlanFacts, facts_of_frame, facts_of_query
from steelyard.spark.retries.plan_text import (
    CUT,
    Step,
    analyzed_plan,
    items_of,
    lists_in,
    physical_plan,
)
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
"""Physical steps that give the same rows in the same order after a task retry."""

_STREAM = re.compile(r"StreamingRelation(?= (FileSource\[|kafka\b|rate\b|rate-micro-batch\b))")
"""Streaming sources that keep their order across task retries: files, Kafka and the rate source."""

_SOURCE = re.compile(r"[\s:]*(?:[+:]- )?StreamingRelation ([\w-]+)")

_STEP = re.compile(r"[\s:]*(?:[+:]- )?(?:\*\(\d+\) )?(\w+)")

_FIELDS = "spark.sql.debug.maxToStringFields"
"""The setting that limits the number of columns that EXPLAIN prints for a step."""

_UNREAD = Doubt("a plan that cannot be read")

_FORGED = Doubt("a plan in which a literal or a name resembles a column number or a step")

_PRINTING = threading.Lock()


@dataclass(frozen=True)
class Repeated:
    """The properties of a frame that decide how its rows behave across task retries."""

    doubts: Mapping[str, Doubt]
    """The columns whose values may differ after a task retry, and why."""
    in_order: bool
    """True if a task retry gets the same rows in the same order."""
    expressions: Mapping[str, str] = field(default_factory=dict)
    """The columns that the last step computes, with the text of their expressions in the plan.

    It has no column if the plan cannot be read.
    """
    numbers: Mapping[int, str] = field(default_factory=dict)
    """The numbers of all columns in the plan."""

    def in_order_by(self, names: Iterable[str]) -> bool:
        """Return True if the rows keep their order and these columns are deterministic."""
        return self.in_order and not any(name in self.doubts for name in names)


def repeated(frame: DataFrame) -> Repeated:
    """Return the properties of a frame across task retries; no job runs.

    Unknown steps and unknown functions make columns doubtful. Sources that are not built into
    Spark do not keep their order.

    >>> rows = spark.range(10).selectExpr("id", "id % 3 AS page")
    >>> repeated(rows).in_order, repeated(rows.repartition(2)).in_order
    (True, False)
    >>> repeated(rows.dropDuplicates(["page"])).doubts
    {'id': Doubt(why='dropDuplicates, ...', kind=<Kind.ORDER...)}
    """
    # This adds a step that shows the numbers of all columns; a range alone does not show them.
    planned = frame.select("*")
    text = _uncut(frame.sparkSession, partial(_explained, planned))
    facts = facts_of_frame(planned)
    rows = _rows(text, planned, facts)
    if rows.ids is None or len(rows.ids) != len(frame.columns):
        doubt = rows.others or _UNREAD
        return Repeated(dict.fromkeys(frame.columns, doubt), in_order=False)
    about = zip(frame.columns, map(rows.doubt, rows.ids), strict=True)
    return Repeated(
        {name: doubt for name, doubt in about if doubt is not None},
        rows.ordered and _keeps_order(text),
        _computed(_read(text, facts)),
        dict(zip(rows.ids, frame.columns, strict=True)),
    )


def repeats_its_order(frame: DataFrame) -> bool:
    """Return True if rows are read directly from files, and only filtered or computed row by row.

    The rows may arrive in another order after a shuffle, or from a source that is not built into
    Spark (`BatchScan`).

    >>> repeats_its_order(spark.range(10).selectExpr("id * 2 AS twice"))
    True
    >>> repeats_its_order(spark.range(10).repartition(2))
    False
    """
    return repeated(frame).in_order


def sources_of(stream: DataFrame) -> list[str]:
    """Return the kinds of sources that a stream reads; [] if its plan does not show them.

    >>> sources_of(spark.readStream.format("rate").load())
    ['rate']
    >>> sources_of(spark.readStream.schema("page string").json(folder))
    ['files']
    """
    steps = map(_SOURCE.match, physical_plan(_explained(stream)))
    kinds = [step[1] for step in steps if step is not None]
    return ["files" if kind.startswith("FileSource") else kind for kind in kinds]


def _computed(plan: Step | None) -> dict[str, str]:
    """Return the expressions of the step below the root, which passes all columns on."""
    last = plan.children[0] if plan is not None and plan.children else None
    lists = lists_in(last.text) if last is not None and last.name == "Project" else None
    items = items_of(lists[0]) if lists and len(lists) == 1 else None
    named = [item for item in items or () if item.is_named]
    return {item.name: item.text.removesuffix(f" AS {item.name}") for item in named}


def _rows(text: str, frame: DataFrame, facts: PlanFacts | None) -> Rows:
    """Return the rows of a frame, from the text of its plan."""
    if facts is not None and facts.readable(text) is None:
        return Rows(None, others=_FORGED)
    plan = _read(text, facts)
    if plan is None or facts is None:
        return Rows(None, others=_UNREAD)
    find_rows = partial(_of_query, frame)
    is_streaming = "Deduplicate" in text and frame.isStreaming  # it matters for no other step
    rows = Lineage(types_within(plan, facts.types), find_rows, is_streaming).rows(plan)
    if facts.numbers is not None or not rows.doubts:  # all types are known, or none is needed
        return rows
    if rows.ids is None or len(rows.ids) != len(frame.columns):
        return rows
    # The numbers of the result columns are known now, and the schema has their types.
    types = dict(zip(rows.ids, (field.dataType for field in frame.schema.fields), strict=True))
    return Lineage(types_within(plan, types), find_rows, is_streaming).rows(plan)


def _read(text: str, facts: PlanFacts | None) -> Step | None:
    """Return the analyzed plan; None if its text cannot be parsed."""
    readable = None if facts is None or CUT.search(text) else facts.readable(text)
    return None if readable is None else analyzed_plan(readable)


def _of_query(frame: DataFrame, ids: tuple[int, ...]) -> Rows | None:
    """Return the rows of a micro-batch in `foreachBatch`; None if no running query has its columns.

    Spark hides the plan of a micro-batch from `foreachBatch`. The running query shows it.
    """
    for session, query in _running_queries(frame.sparkSession):
        text = _uncut(session, partial(_printed, partial(query.explain, extended=True)))
        facts = facts_of_query(query)
        plan = _read(text, facts)
        if plan is None or facts is None:
            continue
        rows = Lineage(types_within(plan, facts.types), is_streaming=True).rows(plan)
        if rows.ids == ids:
            return rows
    return None


def _running_queries(session: SparkSession) -> Iterator[tuple[SparkSession, StreamingQuery]]:
    """Yield the running queries of a session, of the active session, and of the first session.

    The session of a micro-batch lists no queries, and a call of `createDataFrame` in `foreachBatch`
    makes it the active session.
    """
    seen: set[int] = set()
    first = SparkSession.builder.getOrCreate()
    for candidate in (session, SparkSession.getActiveSession(), first):
        if candidate is not None and id(candidate) not in seen:
            seen.add(id(candidate))
            yield from ((candidate, query) for query in candidate.streams.active)


def _uncut(session: SparkSession, explain: Callable[[], str]) -> str:
    """Return the text of EXPLAIN with all columns."""
    text = explain()
    if CUT.search(text):
        with _all_fields_of(session):
            text = explain()
    return text


def _explained(frame: DataFrame) -> str:
    """Return the plans of a frame, as Spark prints them.

    EXPLAIN in SQL would need a view, and Spark uncaches a frame whose view is dropped.
    """
    return _printed(partial(frame.explain, extended=True))


@contextmanager
def _all_fields_of(session: SparkSession) -> Iterator[None]:
    """Let EXPLAIN print all columns."""
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
    """Captures the output of one thread; the output of other threads goes to standard output."""

    def __init__(self) -> None:
        super().__init__()
        self._thread, self._out = threading.get_ident(), sys.stdout

    def write(self, text: str) -> int:
        if threading.get_ident() == self._thread:
            return super().write(text)
        return self._out.write(text)


def _printed(explain: Callable[[], None]) -> str:
    """Return the text that a call prints."""
    with _PRINTING, redirect_stdout(_OfThisThread()) as printed:
        explain()
        return printed.getvalue()


def _keeps_order(text: str) -> bool:
    """Return True if all steps of the physical plan keep the order of rows."""
    lines = physical_plan(text)
    steps = [_STEP.match(_STREAM.sub("FileScan", line)) for line in lines]
    return bool(steps) and all(step is not None and step[1] in _REPEATING for step in steps)
