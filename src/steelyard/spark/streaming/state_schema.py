"""The definition of a query as a type, which Spark compares with the type in the checkpoint.

Spark compares the types of a state with those in the checkpoint before a query continues, and
ignores names. A definition therefore becomes a type: other definitions have other types. Its text
is a name in that type, because the error of Spark shows names.
"""

import hashlib
import json
from dataclasses import asdict

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from steelyard.control.definition import Definition

_BEFORE = "the state belongs to a query with "
_AFTER = "; a query with another definition needs a new checkpoint"

_REFUSED = "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"
"""Spark's name of the error. Its text has the schema in the checkpoint, then the new schema."""

_DIGEST_BYTES = 8


def definition_column(definition: Definition, missing: Column) -> Column:
    """Return a column for `groupBy` that is always null and whose type stands for a definition.

    A null takes 8 bytes of each key in the state.

    Args:
        definition: The definition of the query. The types of the states are left out, because
            Spark compares them itself.
        missing: A column of strings that is null in every row. A null literal would not do:
            Spark removes literals from grouping columns.

    Returns:
        A column of structs.
    """
    text = _text(definition)
    digest = hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]
    fingerprint = F.struct(
        *(
            F.lit(None).cast(DecimalType(16 + high, low)).alias(f"_{i}")
            for i, (high, low) in enumerate(divmod(byte, 16) for byte in digest)
        )
    )
    return F.when(missing == "", F.struct(fingerprint.alias(f"{_BEFORE}{text}{_AFTER}")))


def explanation_of(failure: str) -> str | None:
    """Return a sentence that names the change if a query failed because its definition changed.

    Args:
        failure: The error with which Spark ended the query.

    Returns:
        The sentence, or None if the query failed for another reason.
    """
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


def _text(definition: Definition) -> str:
    compared = {name: value for name, value in asdict(definition).items() if name != "states"}
    return json.dumps(compared)
