"""Send the rows of a frame to workers in Arrow blocks.

A frame with its key and the settings of its balancing enter; blocks of rows in the partitions of
their workers leave. A plan is made from counts of the rows, unless it is given.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.executor import packing
from steelyard.plans import Balance, Planner, RoutingPlan
from steelyard.reported_keys import ReportedKeys
from steelyard.spark.columns import HIDDEN, Key, named
from steelyard.spark.hot_keys import HotKeys
from steelyard.spark.native_routing import BIN, with_bin
from steelyard.spark.repartitioning import counted_plan, fitted, warn_of_equal_rows
from steelyard.spark.routing import Routing, balance_of, planner_of
from steelyard.spark.salts import Salts
from steelyard.spark.shipping import shipped
from steelyard.spark.versions.partitions import to_partitions

BUCKET = f"{HIDDEN}bucket"
_WEIGHT, _HASH = f"{HIDDEN}weight", f"{HIDDEN}hash"


class PackedFrame:
    """The exchange of a grouped frame; `GroupedFrame` describes its settings."""

    frame: DataFrame
    key: Key
    bins: int
    routing: Routing
    salts: Salts
    in_order: bool
    weight: str | None
    capacities: Sequence[float] | None
    whole_light_keys: bool

    # Both need a counting pass, which runs once for all results.

    @cached_property
    def _hot_keys(self) -> HotKeys:
        reported = ReportedKeys.of(balance_of(self.routing).report_keys)
        return HotKeys.of(self.frame, self.key, self._planner(), self.weight, reported)

    @cached_property
    def _plan_of_hot_keys(self) -> RoutingPlan:
        """A plan in which only hot keys are split."""
        plan = fitted(self._hot_keys.plan, self.salts)
        warn_of_equal_rows(self.frame, plan, self._hot_keys.bucket(), self.salts)
        return plan

    @cached_property
    def _plan(self) -> RoutingPlan:
        if isinstance(self.routing, RoutingPlan):
            return fitted(self.routing, self.salts)
        return counted_plan(
            self.frame,
            self.key.names,
            self._planner(),
            self.salts,
            weight=self.weight,
            sample=balance_of(self.routing).sample,
        )

    def _planner(self) -> Planner:
        balance = replace(balance_of(self.routing), buckets=self.key.buckets)
        return planner_of(balance, self.bins, self.capacities)

    def _exchanged(
        self, columns: Sequence[str], bucket: Column | None = None, *, only_hot_split: bool = False
    ) -> DataFrame:
        """Return Arrow blocks of rows in the partitions of their workers.

        Args:
            columns: The columns of the rows.
            bucket: The values of one more column, `BUCKET`, or None.
            only_hot_split: Whether to split only hot keys, as with `whole_light_keys`.

        Returns:
            The blocks.
        """
        frame, destinations = self._routed(only_hot_split or self.whole_light_keys)
        own = [] if bucket is None else [bucket.alias(BUCKET)]
        kept = [*columns, *([BUCKET] if own else []), *destinations.columns]
        pack = shipped(packing.Packer(destinations, tuple(kept)))
        rows = frame.select("*", *own).select(*map(named, kept))
        # Spark resolves columns by name here and fails on dots, so the columns are renamed.
        numbered = rows.toDF(*(f"c{i}" for i in range(len(kept))))
        blocks = numbered.mapInArrow(pack, packing.SCHEMA)
        return to_partitions(blocks, self.bins, F.col("bin")).select("block")

    def _routed(self, only_hot_split: bool) -> tuple[DataFrame, packing.Destinations]:
        """Return the frame with the columns for routing, and how a source task uses them."""
        if not isinstance(self.routing, Balance | RoutingPlan):
            hashed = self.frame.withColumn(_HASH, self.key.hashed())
            return hashed, packing.RoutedHere(_HASH, self.routing, self.bins)
        if only_hot_split:
            plan, bucket = self._plan_of_hot_keys, self._hot_keys.bucket()
        elif isinstance(self.routing, Balance) and self.in_order:
            return self._planned_during_read(self.routing)
        else:
            plan, bucket = self._plan, self.key.bucket()
        return with_bin(self.frame, plan, bucket, self.salts.column()), packing.Decided(BIN)

    def _planned_during_read(self, balance: Balance) -> tuple[DataFrame, packing.Destinations]:
        place = f"{HIDDEN}place"
        frame = self.frame.withColumn(place, self.key.bucket())
        if self.weight is not None:
            frame = frame.withColumn(_WEIGHT, named(self.weight).cast("double"))
        destinations = packing.PlannedHere(
            bucket=place,
            weight=_WEIGHT if self.weight is not None else None,
            bins=self.bins,
            epsilon=balance.epsilon,
            buckets=self.key.buckets,
            capacities=self.capacities,
        )
        return frame, destinations
