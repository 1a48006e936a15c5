"""Collect the values of a key: all distinct values, or the most frequent values."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steelyard.aggregators.base import Aggregator, States, refuse_unless
from steelyard.aggregators.groups import Groups
from steelyard.aggregators.layout import is_ordered
from steelyard.validation import require_whole


def _spread_lists(lists: pa.ListArray, groups: Groups) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return all elements of the lists, and the group of each element."""
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return lists.flatten(), np.repeat(groups.ids, lengths)


def _as_lists(values: pa.Array, ids: NDArray[np.int64], count: int) -> pa.ListArray:
    """Return a list of the values of each group; `ids` must be sorted."""
    ends = np.bincount(ids, minlength=count).cumsum()
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


class CollectSet(Aggregator):
    """The distinct values that are not null, in ascending order."""

    function = "collect_set"

    def check(self, schema: pa.Schema) -> None:
        super().check(schema)
        kind = schema.field(self.column).type
        refuse_unless(is_ordered(kind), self, kind, "values with an order")

    def state(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        return {"values": pa.list_(schema.field(self.column).type)}

    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        return [self._distinct(batch.column(self.column), groups.ids, groups.count)]

    def merge(self, states: States, groups: Groups) -> States:
        return [self._distinct(*_spread_lists(states[0], groups), groups.count)]

    @staticmethod
    def _distinct(values: pa.Array, ids: NDArray[np.int64], count: int) -> pa.Array:
        pairs = pa.table({"group": ids, "value": values}).filter(pc.field("value").is_valid())
        pairs = pairs.group_by(["group", "value"], use_threads=False).aggregate([])
        pairs = pairs.sort_by([("group", "ascending"), ("value", "ascending")]).combine_chunks()
        distinct = pairs["value"].combine_chunks().cast(values.type)
        return _as_lists(distinct, pairs["group"].to_numpy(), count)

    def result(self, states: States) -> pa.Array:
        return states[0]

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        return pa.list_(pa.field("item", schema.field(self.column).type, nullable=False))


_CAPACITY = 10_000
"""The default number of values in the state of `TopK`."""


class TopK(Aggregator):
    """The `k` most frequent values of a key, with their counts and an error bound.

    The state holds up to `capacity` values per key. The counts are exact for a key with at most
    `capacity` different values. For other keys the state is a Misra-Gries summary, merged as in
    Agarwal et al., *Mergeable Summaries*, 2012: the values with the smallest counts are dropped,
    and the other counts are lowered. The true count of a value is at least `count` and at most
    `count + error`, and `error` is at most the key's messages / (capacity + 1). A value that is not
    listed has at most the least listed count plus `error`.

    The default of 10,000 (or `k`, if larger) is that of Spark's `approx_top_k`. A key with
    10,000 different numbers then has a state of 160 kB. A key with few values has a small state
    with any capacity. With many keys of thousands of values each, a capacity of 1,000 saves memory.

    Args:
        column: The column of the values.
        k: The number of values in the result.
        capacity: The number of values in the state of a key, at least `k`.
    """

    function = "top_k"

    def __init__(self, column: str, k: int = 10, capacity: int | None = None) -> None:
        super().__init__(column)
        require_whole("k", k, least=1)
        self.k = k
        self.capacity = max(_CAPACITY, k) if capacity is None else capacity
        require_whole("capacity", self.capacity, least=k)

    def check(self, schema: pa.Schema) -> None:
        super().check(schema)
        kind = schema.field(self.column).type
        refuse_unless(is_ordered(kind), self, kind, "values with an order")

    def state(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        kind = schema.field(self.column).type
        return {
            "values": pa.list_(kind),
            "counts": pa.list_(pa.int64()),
            "error": pa.int64(),
        }

    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        values = batch.column(self.column)
        ones = np.ones(len(values), np.int64)
        return self._summarize(values, groups.ids, ones, np.zeros(groups.count, np.int64))

    def merge(self, states: States, groups: Groups) -> States:
        values, ids = _spread_lists(states[0], groups)
        counts = states[1].flatten().to_numpy()
        errors = groups.reduce(states[2], "sum").to_numpy().astype(np.int64)
        return self._summarize(values, ids, counts, errors)

    def _summarize(
        self,
        values: pa.Array,
        ids: NDArray[np.int64],
        counts: NDArray[np.int64],
        errors: NDArray[np.int64],
    ) -> States:
        pairs = pa.table({"group": ids, "value": values, "count": counts})
        pairs = pairs.filter(pc.field("value").is_valid())
        pairs = pairs.group_by(["group", "value"], use_threads=False).aggregate([("count", "sum")])
        pairs = _by_frequency(pairs.rename_columns(["group", "value", "count"]))
        groups, totals = pairs["group"].to_numpy(), pairs["count"].to_numpy()
        # Subtract the first count beyond the capacity from all counts of its group; at most
        # `capacity` values then have a positive count.
        surplus = np.zeros(errors.size, np.int64)
        first_out = _rank_in_group(groups) == self.capacity
        surplus[groups[first_out]] = totals[first_out]
        lowered = totals - surplus[groups]
        keep = lowered > 0
        kept = pairs["value"].combine_chunks().filter(pa.array(keep)).cast(values.type)
        return [
            _as_lists(kept, groups[keep], errors.size),
            _as_lists(pa.array(lowered[keep]), groups[keep], errors.size),
            pa.array(errors + surplus),
        ]

    def result(self, states: States) -> pa.Array:
        one_per_row = Groups(np.arange(len(states[0])), len(states[0]))
        values, ids = _spread_lists(states[0], one_per_row)
        pairs = pa.table({"group": ids, "value": values, "count": states[1].flatten()})
        pairs = _by_frequency(pairs)
        groups = pairs["group"].to_numpy()
        keep = _rank_in_group(groups) < self.k
        top = pairs.filter(pa.array(keep)).combine_chunks()
        errors = states[2].take(top["group"].combine_chunks())
        entries = pa.StructArray.from_arrays(
            [top["value"].combine_chunks(), top["count"].combine_chunks(), errors],
            fields=list(self._entry_type(values.type)),
        )
        return _as_lists(entries, groups[keep], len(states[0]))

    @staticmethod
    def _entry_type(kind: pa.DataType) -> Any:
        return pa.struct([("value", kind), ("count", pa.int64()), ("error", pa.int64())])

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        return pa.list_(self._entry_type(schema.field(self.column).type))


def _by_frequency(pairs: pa.Table) -> pa.Table:
    """Sort by group, descending count and value; the value makes the order deterministic."""
    order = [("group", "ascending"), ("count", "descending"), ("value", "ascending")]
    return pairs.sort_by(order).combine_chunks()


def _rank_in_group(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, 2, ... within each run of equal ids; `ids` must be sorted."""
    ranks: NDArray[np.int64] = np.arange(ids.size) - np.searchsorted(ids, ids)
    return ranks
