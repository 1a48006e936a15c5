"""The definition of a query as types, which Spark compares with the types in the checkpoint.

Spark compares the types of a state with those in the checkpoint before a query continues, and
ignores names. A definition therefore becomes the types of a few columns: another definition has
other types. Its text is the name of one of them, because the error of Spark shows names, and the
names in a checkpoint can be read before a query starts.
"""

import hashlib
import json
import re
from dataclasses import asdict

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from steelyard.control.definition import Definition
from steelyard.spark.columns import HIDDEN

_BEFORE = "the state belongs to a query with "
_AFTER = "; a query with another definition needs a new checkpoint"

_WORD = f"{HIDDEN}definition_"
"""The beginning of names in which the definition is written as hexadecimal digits."""

_REFUSED = "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"
"""Spark's name of the error. Its text has the schema in the checkpoint, then the new schema."""

_REFUSED_BY_A_TASK = re.compile(r"the checkpoint is of a query with the .* or use a new checkpoint")
"""The error of `Definition.require_same`, within the error of a task that raised it."""

_CONTROL_PATH = re.compile(r"^(?:ValueError|RuntimeError): (control: [^\n]+)", re.MULTILINE)
"""The last line of the traceback of a task that cannot use the control path."""

_COLUMNS = 4
"""Number of columns; two definitions have the same types once in a billion."""

_MOST_DIGITS = 18
"""Most digits of the decimals. Spark's fast aggregation has no decimals with more digits, and no
structs."""


def definition_columns(definition: Definition, missing: Column) -> dict[str, Column]:
    """Return columns for `groupBy` that are always null and whose types stand for a definition.

    A null takes 8 bytes of each key in the state.

    Args:
        definition: The definition of the query. The types of the states are left out, because
            Spark compares them itself.
        missing: A column of strings that is null in every row. A null literal would not do:
            Spark removes literals from grouping columns.

    Returns:
        The columns by their names.
    """
    text = json.dumps({name: v for name, v in asdict(definition).items() if name != "states"})
    number = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    columns = {}
    for i in range(_COLUMNS):
        number, chosen = divmod(number, len(_DECIMALS))
        name = f"{HIDDEN}{i}" if i else f"{HIDDEN}{_BEFORE}{definition.to_json()}{_AFTER}"
        columns[name] = F.when(missing == "", F.lit(0).cast(_DECIMALS[chosen]))
    return columns


_DECIMALS = [
    DecimalType(digits, scale)
    for digits in range(1, _MOST_DIGITS + 1)
    for scale in range(digits)  # 0 must fit
]


def definition_word(definition: Definition) -> str:
    """Return a definition as the name of a key column of state in Python: a word, for Avro."""
    return f"{_WORD}{definition.to_json().encode().hex()}"


def definition_in(name: str) -> str | None:
    """Return the definition, as JSON, in the name of a key column; None if it has none."""
    if name.startswith(_WORD):
        return bytes.fromhex(name.removeprefix(_WORD)).decode()
    text = name.removeprefix(f"{HIDDEN}{_BEFORE}")
    return None if text == name else text.removesuffix(_AFTER)


def explanation_of(failure: str) -> str | None:
    """Return our sentence if a query failed by its control path or by a changed definition.

    Args:
        failure: The error with which Spark ended the query.

    Returns:
        The sentence, or None if the query failed for another reason.
    """
    by_task = _REFUSED_BY_A_TASK.search(failure)
    if by_task is not None:
        return by_task[0]
    by_control = _CONTROL_PATH.search(failure)
    if by_control is not None:
        return by_control[1]
    schemas = failure.partition(_REFUSED)[2].split(_BEFORE)[1:3]
    if len(schemas) < 2:
        return None
    was, now = (schema.partition(_AFTER)[0] for schema in schemas)
    try:
        Definition(**json.loads(now)).require_same(was)
    except json.JSONDecodeError:  # Spark has cut the text
        return None
    except ValueError as error:
        return str(error)
    return None
