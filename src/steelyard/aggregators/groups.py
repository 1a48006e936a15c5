"""Assign rows to groups, numbered 0, 1, 2, ..., and reduce columns by group."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True)
class Groups:
    """The group of each row, numbered 0, 1, ... in the order of first appearance.

    >>> groups = Groups.of([pa.array(["b", "a", "b", None])])
    >>> groups.ids
    array([0, 1, 0, 2])
    >>> groups.reduce(pa.array([1, 2, 3, None]), "sum").to_pylist()
    [4, 2, None]
    """

    ids: NDArray[np.int64]
    count: int

    @classmethod
    def of(cls, columns: list[pa.Array]) -> "Groups":
        """Group rows with equal values in all (plain) columns; null equals null."""
        ids, count = _encode(columns[0])
        for column in columns[1:]:
            more_ids, more_count = _encode(column)
            ids, count = _encode(pa.array(ids * max(more_count, 1) + more_ids))
        return cls(ids, count)

    def first_rows(self) -> NDArray[np.int64]:
        """Return the number of each group's first row."""
        first = np.zeros(self.count, np.int64)
        # Written in reverse, so the last write of each group is its first row.
        first[self.ids[::-1]] = np.arange(self.ids.size)[::-1]
        return first

    def sizes(self) -> NDArray[np.int64]:
        """Return each group's number of rows."""
        return np.bincount(self.ids, minlength=self.count).astype(np.int64)

    def reduce(self, column: pa.Array, how: str) -> pa.Array:
        """Return the "sum", "min", "max" or "count" of each group's values; nulls are skipped."""
        table = pa.table({"group": self.ids, "value": column})
        reduced = table.group_by("group", use_threads=False).aggregate([("value", how)])
        values = reduced[f"value_{how}"].combine_chunks()
        order = np.argsort(reduced["group"].to_numpy(), kind="stable")
        return values.take(pa.array(order))

    def pieces(self, column: pa.Array) -> Iterator[tuple[int, pa.Array]]:
        """Yield each group with its values; skip nulls and groups without values."""
        valid = column.is_valid()
        ids = self.ids[valid.to_numpy(zero_copy_only=False)]
        order = np.argsort(ids, kind="stable")
        values = column.filter(valid).take(pa.array(order))
        ends = np.bincount(ids, minlength=self.count).cumsum()
        starts = np.concatenate(([0], ends[:-1])) if self.count else ends
        for group in np.flatnonzero(ends > starts).tolist():
            yield group, values.slice(starts[group], ends[group] - starts[group])


def _encode(column: pa.Array) -> tuple[NDArray[np.int64], int]:
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
