"""Check the functions and the key of `apply_in_pandas`.

The arguments of the user enter; the work of the tasks leaves.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from steelyard.aggregators.layout import is_plain, plain_schema
from steelyard.executor.key_worker import ApplyByKey
from steelyard.executor.pandas_function import OnPandas, PandasFunction
from steelyard.spark.arrow_types import arrow_schema
from steelyard.spark.columns import named, shown

_CALL = "apply_in_pandas"


@dataclass(frozen=True)
class KeyFunctions:
    """The function for light keys, the one for parts of hot keys, and the merge, if there is one.

    Args:
        function: The function for keys whose rows are all in one task.
        hot: The function for the parts of hot keys.
        merge: The function that merges partial results, or None.
    """

    function: OnPandas
    hot: OnPandas
    merge: OnPandas | None

    @classmethod
    def of(
        cls,
        function: PandasFunction,
        hot: PandasFunction | None,
        merge: PandasFunction | None,
        schema: pa.Schema,
        zone: str,
        computed: tuple[str, ...] = (),
    ) -> "KeyFunctions":
        """Check the functions of the user.

        Args:
            function: The function for light keys.
            hot: The function for the parts of hot keys, if it is another one.
            merge: The function that merges the results for these parts, or None.
            schema: The schema of the results.
            zone: The time zone of the session.
            computed: The columns of the key that are computed, and that no function gets.

        Returns:
            The functions.

        Raises:
            TypeError: A function is not callable, or takes another number of arguments.
        """

        def checked(argument: str, of_user: PandasFunction) -> OnPandas:
            takes_key = _takes_key(argument, of_user)
            settings = schema, zone, _CALL, argument, takes_key
            return OnPandas(of_user, *settings, exact_integers=False, computed=computed)

        light = checked("function", function)
        return cls(
            function=light,
            hot=light if hot is None else checked("hot", hot),
            merge=None if merge is None else checked("merge", merge),
        )

    def work(self, key: Sequence[str], bucket: str, first_hot: int) -> ApplyByKey:
        """Return the work of a task; keys with a bucket from `first_hot` on are hot."""
        return ApplyByKey(self.function, self.hot, tuple(key), bucket, first_hot)


def _takes_key(argument: str, function: PandasFunction) -> bool:
    """Return whether a function takes the key besides the rows, as Spark decides it."""
    if not callable(function):
        raise TypeError(f"{argument} must be callable, got {function!r}")
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = sum(it.kind in positional for it in inspect.signature(function).parameters.values())
    if taken not in (1, 2):
        raise TypeError(
            f"{argument} must take one argument, the rows, or two, the key and the rows; "
            f"{function!r} takes {taken}"
        )
    return taken == 2


def require_plain_key(frame: DataFrame, key: Sequence[str]) -> None:
    """Refuse a key with a column of a nested type, whose values Arrow cannot group."""
    arrow = arrow_schema(frame.sparkSession, _CALL, frame.select(*map(named, key)).schema)
    for field in plain_schema(arrow):
        if not is_plain(field.type):
            kind = frame.schema[field.name].dataType.simpleString()
            raise ValueError(
                f"key: column {shown(field.name)!r} has the type {kind}, but keys of {_CALL} must "
                "be booleans, numbers, strings, bytes, dates, timestamps or intervals; pass its "
                "fields or elements as separate key columns"
            )
