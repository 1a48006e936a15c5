"""Find the keys that are too large for one task, so that all other keys can stay whole.

A frame, its key and a planner enter; the hot keys and a plan that splits no other key leave. Each
hot key has its own bucket, after the buckets of all other keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from steelyard.key_text import WIDTH, shown_key
from steelyard.plans import Planner, RoutingPlan
from steelyard.reported_keys import PLAIN, ReportedKeys
from steelyard.showing import card, counted, paragraph, short_bar, table_as_html, table_as_text
from steelyard.spark.columns import HIDDEN, Key, amount_of, named
from steelyard.spark.repartitioning import bucket_counts
from steelyard.spark.versions.interfaces import position_in

_AMOUNT, _HASH = f"{HIDDEN}amount", f"{HIDDEN}hash"

_LISTED = 20
"""The number of hot keys that are shown; of the others only the number."""
_LEAST_WIDTH = 16
"""Columns of a terminal that each of many key columns may have."""


class HotKeyRows(Sequence[Row]):
    """The hot keys of a frame, the most frequent first, which show themselves as a table.

    Args:
        rows: The keys.
        shares: The share of the rows that each of them has.
        reported: How the table names the keys; the rows themselves have the keys.

    >>> hot = HotKeyRows([Row(page="news"), Row(page=None)], [0.5, 0.3])
    >>> hot
    2 hot keys
    page    of the rows
    news        50.00 %
    (null)      30.00 %
    >>> hot[0], hot == [Row(page="news"), Row(page=None)]
    (Row(page='news'), True)
    """

    def __init__(
        self, rows: Sequence[Row], shares: Sequence[float], reported: ReportedKeys = PLAIN
    ) -> None:
        self._rows, self._shares, self._reported = tuple(rows), tuple(shares), reported

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> "HotKeyRows": ...
    def __getitem__(self, place: int | slice) -> "Row | HotKeyRows":
        if isinstance(place, slice):
            return HotKeyRows(self._rows[place], self._shares[place], self._reported)
        return self._rows[place]

    def __eq__(self, other: object) -> bool:
        """Compare with a sequence of rows, such as a list."""
        if not isinstance(other, list | tuple | HotKeyRows):
            return NotImplemented
        return self._rows == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        cells = [(*texts, f"{100 * share:.2f} %") for texts, share in self._listed]
        table = table_as_text((*self._names, "of the rows"), cells, self._texts) if cells else []
        return "\n".join([self._heading, *table, *self._unlisted])

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        most = max(self._shares, default=1.0)
        cells = [
            (*texts, f"{100 * share:.2f} %", short_bar(share / most))
            for texts, share in self._listed
        ]
        head, texts = (*self._names, "of the rows", ""), (*self._texts, len(self._names) + 1)
        table = [table_as_html(head, cells, texts)] if cells else []
        return card(self._heading, *table, *map(paragraph, self._unlisted))

    @property
    def _heading(self) -> str:
        return counted(len(self), "hot key") if self else "no hot key"

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(shown_key((name,)) for name in self._rows[0].__fields__) if self else ()

    @property
    def _texts(self) -> range:
        return range(len(self._names))

    @property
    def _listed(self) -> list[tuple[tuple[str, ...], float]]:
        shown = zip(self._rows[:_LISTED], self._shares, strict=False)
        width = max(_LEAST_WIDTH, WIDTH // len(self._names)) if self else WIDTH
        return [(tuple(self._shown(it, width) for it in row), share) for row, share in shown]

    @property
    def _unlisted(self) -> list[str]:
        more = len(self) - _LISTED
        return [f"and {more:,} more"] if more > 0 else []

    def _shown(self, value: object, width: int) -> str:
        text = None if value is None else str(value)
        if isinstance(value, bytes | bytearray):
            text = f"0x{value[:WIDTH].hex().upper()}"
        return shown_key(self._reported.shown_columns((text,)), width)


@dataclass(frozen=True)
class HotKeys:
    """The hot keys of a frame, and a plan that splits only them.

    Args:
        key: The key columns and the buckets of light keys.
        keys: The hot keys, the most frequent first.
        hashes: The hashes of the hot keys; the first has the first bucket after those of `key`.
        plan: The plan for all buckets.
    """

    key: Key
    keys: HotKeyRows
    hashes: tuple[int, ...]
    plan: RoutingPlan

    @classmethod
    def of(
        cls,
        frame: DataFrame,
        key: Key,
        planner: Planner,
        weight: str | None,
        reported: ReportedKeys = PLAIN,
    ) -> "HotKeys":
        """Count by bucket, then by key in the buckets that are too large for one task.

        Args:
            frame: The rows.
            key: The key columns and the buckets of light keys.
            planner: Gives the number of bins, their capacities and epsilon.
            weight: The column with the weight of each row, or None.
            reported: How a table of the hot keys names them.

        Returns:
            The hot keys and their plan.
        """
        counts = bucket_counts(frame, key, weight=weight)
        total = counts.sum()
        limit = total / planner.capacities.sum() * planner.capacities.max()
        large = np.flatnonzero(counts > limit).tolist()
        found: list[Row] = []
        if large:
            own = frame.where(key.bucket().isin(large)).groupBy(*map(named, key.names))
            sums = own.agg(amount_of(weight).alias(_AMOUNT)).withColumn(_HASH, key.hashed())
            # Keys with the same hash have the same destination, so their amounts are added.
            pairs = zip(key.names, key.result_names, strict=True)
            values = F.struct(*(named(name).alias(result) for name, result in pairs))
            together = sums.groupBy(_HASH).agg(
                F.sum(_AMOUNT).alias(_AMOUNT), F.collect_list(values)
            )
            found = together.where(F.col(_AMOUNT) > limit).orderBy(_HASH).collect()
        hashes = tuple(row[0] for row in found)
        own_counts = np.array([float(row[1]) for row in found])
        for value, amount in zip(hashes, own_counts, strict=True):
            counts[value % key.buckets] -= amount
        counts = np.concatenate([np.maximum(counts, 0.0), own_counts])
        with_own = Planner(planner.bins, planner.epsilon, counts.size, planner.capacities)
        plan = with_own.update(counts)
        hottest = sorted(found, key=lambda row: -row[1])
        keys = [(hot, row[1] / total) for row in hottest for hot in row[2]]
        rows = HotKeyRows([hot for hot, _ in keys], [share for _, share in keys], reported)
        return cls(key, rows, hashes, plan.with_whole(range(key.buckets)))

    def bucket(self) -> Column:
        """Return the bucket of a row's key: a hot key has its own, others have that of the hash."""
        if not self.hashes:
            return self.key.bucket()
        known = F.array(*map(F.lit, self.hashes))
        place = position_in(known, self.key.hashed())
        own = (place + (self.key.buckets - 1)).cast("int")
        return F.when(place > 0, own).otherwise(self.key.bucket())
