"""Follow the columns of a plan from its sources to its result.

The analyzed plan of a frame enters; the doubts about its columns leave. A column without a doubt
is deterministic across task retries. Unknown steps and unknown functions cause doubts.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql.types import DataType

from steelyard.spark.retries.plan_text import Step, items_of, parts_of
from steelyard.spark.retries.rows import Rows, deterministic_rows, unknown_rows
from steelyard.spark.retries.steps import KEEP_ROWS, STEPS
from steelyard.spark.retries.traced_step import TracedStep

_FILES = {"parquet", "orc", "csv", "json", "text", "binaryFile", "avro", "xml"}

_ORDERED_STREAM = re.compile(r"FileSource\[|, (kafka|rate|rate-micro-batch), ")

_LISTED_FIRST = {
    "Relation",
    "RelationV2",
    "LocalRelation",
    "LogicalRDD",
    "StreamingDataSourceV2ScanRelation",
}
_STREAMS = {"StreamingRelation", "StreamingRelationV2"}

SOURCES = _LISTED_FIRST | _STREAMS | {"Range", "OneRowRelation", "CTERelationRef"}

_OF_TWO = {"Join", "Intersect", "Except"}
_OF_MANY = {"Union", "WithCTE"}

_BY_PLACE = {"Union", "WithCTE", "CTERelationDef", "Intersect", "Except", "Distinct"}
"""Steps that match columns by their place, and may need all of them."""

_ONLY_MENTIONED = {"Project", "Aggregate", "Expand"}
"""Steps that give only columns that their text mentions."""


@dataclass
class Lineage:
    """The rows of all steps of a plan."""

    types: Mapping[int, DataType] = field(default_factory=dict)
    """The types of columns; a column of unknown type is missing."""
    find_rows: Callable[[tuple[int, ...]], Rows | None] = lambda _: None
    """Returns the rows with these column numbers if Spark hides their plan; None if unknown."""
    is_streaming: bool = False
    """True if the plan is part of a streaming query."""
    _used: frozenset[int] | None = None
    """The columns that the steps after the current one mention; None if all may be needed."""
    _shared: dict[str, Rows] = field(default_factory=dict)
    """The results of common table expressions."""

    def rows(self, step: Step, outer: Rows | None = None) -> Rows:
        """Return the rows that a step gives; `outer` are the rows of the outer query, if any."""
        if step.name in SOURCES and not step.children:
            return self._source(step)
        if step.name not in STEPS or "(redacted)" in step.text:
            return unknown_rows(f"the step {step.name}")
        used = self._used
        try:
            self._used = _used_before(step, used)
            return self._followed(step, outer, used)
        finally:
            self._used = used

    def _followed(self, step: Step, outer: Rows | None, used: frozenset[int] | None) -> Rows:
        """Return the rows that a known step gives, from the rows of its inputs."""
        inputs = [self.rows(child, outer) for child in step.children]
        if len(inputs) != (2 if step.name in _OF_TWO else 1) and step.name not in _OF_MANY:
            return unknown_rows(f"the step {step.name}")
        traced = TracedStep(step, inputs, outer, self.types, self.rows, used, self.is_streaming)
        found = STEPS[step.name](traced) or unknown_rows(f"the step {step.name}")
        if step.name == "CTERelationDef":
            self._shared[(parts_of(step.text) or [""])[0]] = found
        return found if step.name in KEEP_ROWS else found.without_common()

    def _source(self, step: Step) -> Rows:
        """Return the rows of a source, which a retry reads again; some sources keep their order.

        Spark, too, relies on sources that give the same rows again.

        >>> Lineage().rows(Step("Relation", "[id#0L,page#1] parquet")).ordered
        True
        >>> kafka = "kafka, [subscribe=t], [key#7], StreamingRelation kafka, [key#0], name=x"
        >>> Lineage().rows(Step("StreamingRelationV2", kafka)).ids
        (7,)
        """
        if step.name == "Range":  # EXPLAIN does not print the number of its column
            return Rows(None, others=None, ordered=True)
        if step.name == "OneRowRelation":
            return Rows((), ordered=True)
        if step.name == "CTERelationRef":
            return self._reference(step)
        # A source of version 2, such as Kafka, ends with the same source of version 1.
        text = step.text.rpartition(", StreamingRelation ")[0] or step.text
        start = text.find("[") if step.name in _LISTED_FIRST else text.rfind("[")
        stop = text.find("]", start)
        if start < 0 or stop < 0:
            return unknown_rows(f"the step {step.name}")
        items = items_of(parts_of(text[start + 1 : stop]) or [])
        if items is None:
            return unknown_rows(f"the step {step.name}")
        rows = deterministic_rows(items)
        if step.name == "LogicalRDD":
            assert rows.ids is not None
            return self.find_rows(rows.ids) or unknown_rows("an RDD")
        is_file = step.name == "Relation" and text[stop + 1 :].strip() in _FILES
        is_stream = step.name in _STREAMS and _ORDERED_STREAM.search(step.text) is not None
        return replace(rows, ordered=is_file or is_stream or step.name == "LocalRelation")

    def _reference(self, step: Step) -> Rows:
        """Return the rows of a common table expression, under new column numbers."""
        parts = parts_of(step.text) or [""]
        shared = self._shared.get(parts[0])
        lists = [part for part in parts if part.startswith("[")]
        items = items_of(parts_of(lists[0][1:-1]) or []) if lists else None
        if shared is None or shared.ids is None or not items or len(items) != len(shared.ids):
            return unknown_rows("a common table expression")
        doubts = zip(items, map(shared.doubt, shared.ids), strict=True)
        return replace(
            deterministic_rows(items),
            doubts={item.id: doubt for item, doubt in doubts if doubt is not None},
            varies=shared.varies,
        ).without_common()


def _used_before(step: Step, used: frozenset[int] | None) -> frozenset[int] | None:
    """Return the input columns of a step that the step or a later one mentions."""
    if step.name in _BY_PLACE:
        return None
    if step.name in _ONLY_MENTIONED:
        return step.numbers
    return None if used is None else used | step.numbers
