"""The kinds of steps that are known, and what follows from each.

The name of a step leads to a function: what is known of the inputs of the step enters it; what is
known of its result leaves, or None if the text of the step is not what it should be.
"""

from collections.abc import Callable

from steelyard.spark.retries.aggregates import after_aggregate, after_window
from steelyard.spark.retries.combined_rows import after_compare_sets, after_join, after_union
from steelyard.spark.retries.kept_rows import (
    after_deduplicate,
    after_distinct,
    after_filter,
    after_limit,
    after_repartition,
    after_sample,
    after_sort,
    after_watermark,
)
from steelyard.spark.retries.made_columns import after_expand, after_generate, after_project
from steelyard.spark.retries.rows import Rows
from steelyard.spark.retries.traced_step import TracedStep


def _pass_on(traced: TracedStep) -> Rows | None:
    return traced.rows


def _last_input(traced: TracedStep) -> Rows | None:
    return traced.inputs[-1]


KEEP_ROWS = {
    "CollectMetrics",
    "Project",
    "RebalancePartitions",
    "Repartition",
    "RepartitionByExpression",
    "ResolvedHint",
    "Sort",
    "SubqueryAlias",
    "View",
    "Window",
}
"""Steps behind which every row is there once."""

STEPS: dict[str, Callable[[TracedStep], Rows | None]] = {
    "Aggregate": after_aggregate,
    "CTERelationDef": _pass_on,
    "CollectMetrics": _pass_on,
    "Deduplicate": after_deduplicate,
    "DeduplicateWithinWatermark": after_deduplicate,
    "Distinct": after_distinct,
    "EventTimeWatermark": after_watermark,
    "Except": after_compare_sets,
    "Expand": after_expand,
    "Filter": after_filter,
    "Generate": after_generate,
    "GlobalLimit": after_limit,
    "Intersect": after_compare_sets,
    "Join": after_join,
    "LocalLimit": after_limit,
    "Offset": after_limit,
    "Project": after_project,
    "RebalancePartitions": after_repartition,
    "Repartition": after_repartition,
    "RepartitionByExpression": after_sort,
    "ResolvedHint": _pass_on,
    "Sample": after_sample,
    "Sort": after_sort,
    "SubqueryAlias": _pass_on,
    "Tail": after_limit,
    "Union": after_union,
    "View": _pass_on,
    "Window": after_window,
    "WithCTE": _last_input,
    "WriteToMicroBatchDataSourceV1": _pass_on,
}
