"""Facts about a plan that its text cannot prove: literals and names, column numbers, types.

A frame enters; the facts leave. EXPLAIN prints literals without quotes, so the literal `page#12`
and the column `page#12` have the same text. Classic Spark gives the analyzed plan as JSON, which
distinguishes them. Spark Connect gives only the request of the client. The request contains its own
literals, but not the literals of views, and neither column numbers nor types.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from steelyard.spark.retries.plan_text import COLUMN_NUMBER

_NOT_PRINTED = {"metadata", "origin"}
"""Fields that EXPLAIN does not print: comments on columns, and positions in the user's program."""


@dataclass(frozen=True)
class PlanFacts:
    """Facts about a plan that do not come from its text."""

    forged: frozenset[str]
    """The digits of all `#12` in literals and names."""
    numbers: frozenset[str] | None
    """The numbers of all columns; None if Spark does not show them."""
    types: Mapping[int, DataType] = field(default_factory=dict)
    """The types of columns; a column of unknown type is missing."""
    has_line_breaks: bool = False
    """True if a literal or a name has several lines, which may resemble steps."""

    def readable(self, text: str) -> str | None:
        """Return the text of the plan without forged column numbers.

        The result is None if a forged number may also be the number of a real column.

        >>> facts = PlanFacts(forged=frozenset({"7"}), numbers=frozenset({"12"}))
        >>> facts.readable("Filter (color#12 = x#7)")
        'Filter (color#12 = x?7)'
        >>> PlanFacts(frozenset({"12"}), frozenset({"12"})).readable("Sort [x#12 ASC]") is None
        True
        """
        if self.has_line_breaks:
            return None
        if not self.forged:
            return text
        if self.numbers is None or self.forged & self.numbers:
            return None
        return COLUMN_NUMBER.sub(
            lambda found: f"?{found[1]}" if found[1] in self.forged else found[0], text
        )


def facts_of_frame(frame: DataFrame) -> PlanFacts | None:
    """Return the facts about the plan of a frame; None if Spark does not give them."""
    try:
        java = getattr(frame, "_jdf", None)
        return _of_request(frame) if java is None else _of_plan(java.queryExecution())
    except Exception:  # noqa: BLE001 - these interfaces are not public: any error means "unknown"
        return None


def facts_of_query(query: Any) -> PlanFacts | None:
    """Return the facts about the last micro-batch of a query; None if Spark does not give them."""
    try:
        return _of_plan(query._jsq.streamingQuery().lastExecution())
    except Exception:  # noqa: BLE001 - as above; Spark Connect never gives them
        return None


def _of_plan(execution: Any) -> PlanFacts:
    """Return the facts about the analyzed plan of a query on classic Spark."""
    plan = json.loads(execution.analyzed().toJSON())
    numbers: set[str] = set()
    types: dict[int, DataType] = {}
    for node in _objects(plan):
        if str(node.get("product-class", "")).endswith(".ExprId"):
            numbers.add(str(node["id"]))
        if "exprId" in node and "dataType" in node and node["exprId"]["id"] not in types:
            data_type = _parsed_type(node["dataType"])
            types |= {} if data_type is None else {node["exprId"]["id"]: data_type}
    texts = set(_texts(plan))
    has_line_breaks = any(text.splitlines() not in ([], [text]) for text in texts)
    return PlanFacts(_numbers_in(texts), frozenset(numbers), types, has_line_breaks)


def _of_request(frame: Any) -> PlanFacts:
    """Return the facts about the request that a client of Spark Connect sends."""
    # Only clients of Spark Connect have this package.
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]

    plan = MessageToDict(frame._plan.to_proto(frame.sparkSession.client))
    return PlanFacts(_numbers_in(_texts(plan)), None)


def _numbers_in(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(number for text in texts for number in COLUMN_NUMBER.findall(text))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects within a JSON value."""
    if isinstance(value, dict):
        yield value
    for inner in _inner(value):
        yield from _objects(inner)


def _texts(value: Any) -> Iterator[str]:
    """Yield all strings within a JSON value, and the names of its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
    for inner in _inner(value):
        yield from _texts(inner)


def _inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [inner for name, inner in value.items() if name not in _NOT_PRINTED]
    return value if isinstance(value, list) else []


def _parsed_type(written: Any) -> DataType | None:
    """Return a type from its JSON; None if it has a collation, which JSON does not always show."""
    if "collat" in json.dumps(written).lower():
        return None
    only_field = {"name": "field", "type": written, "nullable": True, "metadata": {}}
    try:
        return StructType.fromJson({"type": "struct", "fields": [only_field]}).fields[0].dataType
    except Exception:  # noqa: BLE001 - a type that this version of PySpark does not know
        return None
