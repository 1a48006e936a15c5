"""The known steps of a plan, each with the function that handles it.

A step with its inputs enters such a function. The rows that the step gives leave, or None if the
function cannot parse the text of the step.
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
"""Steps that give every row of their input exactly once."""

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
