"""The programming primitive of partial key grouping: state that can be merged.

Rows enter at any worker, in any split; partial states per key leave; merged, they give the result
that one worker would have reached alone.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import pyarrow as pa

from steelyard.aggregators.groups import Groups

States = list[pa.Array]
"""The columns of a state, one row per key."""


class Aggregator(ABC):
    """How rows of a key become a state, how states merge, and what comes out of them.

    Settings only: frozen, picklable. Write your own by subclassing it; four methods say it all.
    Merging must not depend on the order or the nesting of merges:

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
    """The name of the result's column is `function(column)`, as Spark would name it."""

    def __init__(self, column: str) -> None:
        self.column = column

    @property
    def name(self) -> str:
        """The name of the result's column."""
        return f"{self.function}({self.column})"

    @property
    def columns(self) -> list[str]:
        """The columns of the input that are read."""
        return [self.column]

    @abstractmethod
    def state(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        """Create: the names and types of the state's columns, given the input's schema."""

    @abstractmethod
    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        """Add: the states of the groups of these rows."""

    @abstractmethod
    def merge(self, states: States, groups: Groups) -> States:
        """Merge: states of the same group become one."""

    @abstractmethod
    def result(self, states: States) -> pa.Array:
        """Result: what the states amount to."""

    @abstractmethod
    def result_type(self, schema: pa.Schema) -> pa.DataType:
        """The type of the result."""

    def check(self, schema: pa.Schema) -> None:
        """Refuse an input that this aggregator cannot read, before any work starts."""
        for column in self.columns:
            if schema.get_field_index(column) < 0:
                raise ValueError(
                    f"{self.name} needs the column {column!r}; there are {schema.names}"
                )

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def refuse_unless(accepted: bool, aggregator: Aggregator, kind: pa.DataType, needs: str) -> None:
    """One sentence for a column of the wrong type."""
    if not accepted:
        raise ValueError(f"{aggregator.name} needs a column of {needs}, got {kind}")
