"""Read the request of a frame of Spark Connect, without a round trip to the server.

A frame enters; what its request proves leaves. A request contains neither the columns of tables
nor the definitions of views, so it proves less than an analyzed plan. What it does not prove is
unknown.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from steelyard.spark.retries.known_functions import FUNCTIONS

_KNOWN = FUNCTIONS | {*"+-*/%<>&|^~!", "==", "!=", "<=>", "<=", ">=", "not", "when"}
"""The names of deterministic functions and operators in a request."""

_SOURCES = {"range", "localRelation", "cachedLocalRelation", "chunkedCachedLocalRelation"}

_STEPS = {
    "drop",
    "filter",
    "hint",
    "join",
    "project",
    "repartition",
    "repartitionByExpression",
    "sort",
    "subqueryAlias",
    "toDf",
    "withColumns",
    "withColumnsRenamed",
}
"""Steps that give deterministic rows if their inputs and their expressions are deterministic."""

_INPUTS = {"input", "left", "right", "leftInput", "rightInput"}

_EXPRESSIONS = {
    "aliases",
    "columns",
    "expressions",
    "condition",
    "joinCondition",
    "order",
    "partitionExprs",
}


_NAMES = {"renames", "renameColumnsMap"}


def streams_by_request(frame: DataFrame) -> bool:
    """Return True if the request shows that the frame is a stream."""
    return _has_stream(_root_of(frame))


def repeated_by_request(frame: DataFrame) -> bool:
    """Return True if the request proves that all columns are deterministic across task retries.

    The rows come from data sources, ranges or local data, through steps that move, choose and
    compute rows one by one with known functions.
    """
    return _is_deterministic(_root_of(frame))


def _root_of(frame: Any) -> dict[str, Any]:
    # Only clients of Spark Connect have this package.
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]

    plan = MessageToDict(frame._plan.to_proto(frame.sparkSession.client))
    root: dict[str, Any] = plan["root"]
    return root


def _has_stream(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_stream, value))
    if not isinstance(value, dict):
        return False
    return value.get("isStreaming") is True or any(map(_has_stream, value.values()))


def _kind_of(message: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the only field of a message besides those that all messages of its type have."""
    fields = [(name, value) for name, value in message.items() if name not in ("common", "planId")]
    return fields[0] if len(fields) == 1 else ("", None)


def _is_deterministic(relation: Mapping[str, Any]) -> bool:
    kind, step = _kind_of(relation)
    if kind == "read":
        return "dataSource" in step  # a named table may be a view
    if kind == "setOp":
        is_union = step.get("setOpType") == "SET_OP_TYPE_UNION"
        return is_union and all(_is_deterministic(step[name]) for name in _INPUTS & step.keys())
    if kind in _SOURCES:
        return True
    return kind in _STEPS and all(_is_known(*field) for field in step.items())


def _is_known(name: str, value: Any) -> bool:
    """Return True if a field of a step is deterministic."""
    if name in _INPUTS:
        return _is_deterministic(value)
    values = [] if name in _NAMES else value if isinstance(value, list) else [value]
    if name in _EXPRESSIONS:
        return all(map(_is_function_of_row, values))
    return not any(isinstance(it, dict) for it in values)


def _is_function_of_row(expression: Any) -> bool:
    """Return True if an expression has the same value for the same row."""
    if isinstance(expression, str):  # the name of a column
        return True
    if "expr" in expression:  # an alias of `withColumns`
        return _is_function_of_row(expression["expr"])
    if "child" in expression:
        return _is_function_of_row(expression["child"])
    kind, content = _kind_of(expression)
    if kind in ("literal", "unresolvedAttribute", "unresolvedStar"):
        return True
    if kind in ("alias", "cast"):
        return _is_function_of_row(content["expr"])
    if kind == "sortOrder":
        return _is_function_of_row(content["child"])
    if kind != "unresolvedFunction" or content.get("isUserDefinedFunction"):
        return False
    is_known = content["functionName"].lower() in _KNOWN
    return is_known and all(map(_is_function_of_row, content.get("arguments", [])))
