"""The base of aggregators: a partial state per key that can be merged.

Rows enter at any worker, in any split; partial states per key leave. Merged, the states give the
result that one worker would compute from all rows.
"""

from abc import ABC, abstractmethod
from copy import copy
from typing import ClassVar, Self

import pyarrow as pa

from steelyard.aggregators.groups import Groups

States = list[pa.Array]
"""The columns of a state, one row per key."""


class Aggregator(ABC):
    """A function of the rows of a key, computed from partial states that merge.

    An aggregator has settings only; it is frozen and picklable. To write your own, subclass it
    and define the methods below. The result must not depend on the order or the nesting of
    merges.

    >>> import numpy as np
    >>> class AllTrue(Aggregator):
    ...     function = "every"
    ...     def state(self, schema):
    ...         return {"failed": pa.int64()}
    ...     def add(self, batch, groups):
    ...         failed = np.logical_not(batch.column(self.column).to_numpy(zero_copy_only=False))
    ...         return [groups.reduce(pa.array(failed.astype(np.int64)), "sum")]
    ...     def merge(self, states, groups):
    ...         return [groups.reduce(states[0], "sum")]
    ...     def result(self, states):
    ...         return pa.array(states[0].to_numpy() == 0)
    ...     def result_type(self, schema):
    ...         return pa.bool_()
    >>> from steelyard.aggregators import Aggregation
    >>> rows = pa.record_batch({"host": ["a", "b", "a"], "up": [True, True, False]})
    >>> every = Aggregation([AllTrue("up")], by=["host"], schema=rows.schema)
    >>> every.result(every.add(every.create(), rows)).to_pydict()
    {'host': ['a', 'b'], 'every(up)': [False, True]}
    """

    function: ClassVar[str]
    """The result column is named `function(column)`, as in Spark, unless it has an alias."""

    _alias: str | None = None

    def __init__(self, column: str) -> None:
        self.column = column

    @property
    def name(self) -> str:
        """The name of the result column."""
        return self.default_name if self._alias is None else self._alias

    @property
    def default_name(self) -> str:
        """The name of the result column if it has no alias."""
        return f"{self.function}({self.column})"

    def alias(self, name: str) -> Self:
        """Return the same aggregator with another name for its result column.

        In a stream the alias belongs to the checkpoint, like the other settings of an aggregator.

        >>> from steelyard.aggregators import Max
        >>> Max("ms").alias("slowest").name
        'slowest'
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"alias must be a name, got {name!r}")
        named = copy(self)
        named._alias = name
        return named

    @property
    def columns(self) -> list[str]:
        """The input columns that the aggregator reads."""
        return [self.column]

    @abstractmethod
    def state(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        """Return the names and types of the state columns for an input with this schema."""

    @abstractmethod
    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        """Return the states of the groups of these rows."""

    @abstractmethod
    def merge(self, states: States, groups: Groups) -> States:
        """Merge the states of each group into one."""

    @abstractmethod
    def result(self, states: States) -> pa.Array:
        """Return the results of the states."""

    @abstractmethod
    def result_type(self, schema: pa.Schema) -> pa.DataType:
        """Return the type of the result for an input with this schema."""

    def check(self, schema: pa.Schema) -> None:
        """Raise a ValueError for an input that this aggregator cannot read."""
        for column in self.columns:
            if schema.get_field_index(column) < 0:
                raise ValueError(
                    f"{self.name} needs the column {column!r}; the columns are {schema.names}"
                )

    def __repr__(self) -> str:
        given = {name: value for name, value in vars(self).items() if name != "_alias"}
        settings = ", ".join(f"{name}={value!r}" for name, value in given.items())
        alias = "" if self._alias is None else f".alias({self._alias!r})"
        return f"{type(self).__name__}({settings}){alias}"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def refuse_unless(accepted: bool, aggregator: Aggregator, kind: pa.DataType, needs: str) -> None:
    """Raise a ValueError unless the type of a column is accepted.

    Args:
        accepted: Whether the type is accepted.
        aggregator: The aggregator that reads the column.
        kind: The type of the column.
        needs: The values that the aggregator accepts, such as "numbers".
    """
    if not accepted:
        raise ValueError(f"{aggregator.name} needs a column of {needs}, got {kind}")
