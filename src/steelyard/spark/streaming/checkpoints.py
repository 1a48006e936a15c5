"""Compare the definition of a query with the one in its checkpoint, before the query starts.

A checkpoint and a definition enter; an error leaves if the state belongs to another query. Spark's
source of states shows the names of the key columns, of which one is a definition. Spark itself
finds the checkpoint, so it may be wherever a query may keep one.
"""

from collections.abc import Iterator

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from steelyard.control.definition import Definition
from steelyard.spark.failures import is_of_spark
from steelyard.spark.streaming.processors import VARIABLE
from steelyard.spark.streaming.state_schema import definition_in

_OPERATORS = 16
"""Number of stateful operators that are looked at; a grouping of a stream has at most two."""

_HAS_VARIABLES = "STDS_REQUIRED_OPTION_UNSPECIFIED"
"""Spark's name of the error if an operator keeps state for Python, in named variables."""


def require_same_definition(session: SparkSession, checkpoint: str, definition: Definition) -> None:
    """Raise a ValueError if a checkpoint has the state of a query with another definition.

    A query may have several groupings, of which one must have this definition. Nothing is compared
    if no micro-batch is finished, or if Spark cannot read the checkpoint: the query itself then
    reports the problem.
    """
    difference: ValueError | None = None
    for names in _keys_in(session, checkpoint):
        for before in filter(None, map(definition_in, names)):
            try:
                definition.require_same(before)
            except ValueError as error:
                difference = difference or error
            else:
                return
    if difference is not None:
        raise difference


def _keys_in(session: SparkSession, checkpoint: str) -> Iterator[list[str]]:
    """Yield the names of the key columns of each stateful operator in a checkpoint."""
    for operator in map(str, range(_OPERATORS)):
        names, failure = _key_names(session, checkpoint, operatorId=operator)
        if _HAS_VARIABLES in failure:
            options = {"operatorId": operator, "stateVarName": VARIABLE}
            names, _ = _key_names(session, checkpoint, **options)  # none in state of the user
        elif failure:
            return  # there is no such operator, or no checkpoint
        yield names


def _key_names(session: SparkSession, checkpoint: str, **options: str) -> tuple[list[str], str]:
    """Return the names of the key columns of a state, and Spark's error if it cannot be read."""
    reader = session.read.format("statestore").options(**options)
    try:
        key = reader.load(checkpoint).schema["key"].dataType
    except Exception as error:
        if not is_of_spark(error):
            raise
        return [], str(error)
    return key.fieldNames() if isinstance(key, StructType) else [], ""
