"""Recommend one thing to do, with its line of code.

A job and the costs of strategies enter; a recommendation leaves. It may be to change nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.doctor.costs import Cost
from steelyard.doctor.job import Job
from steelyard.doctor.plain_text import worker_count
from steelyard.doctor.strategies import CONSISTENT_GROUPING, KEY_GROUPING
from steelyard.doctor.work import JOIN

WORTH = 1.25
"""Smallest slowdown worth fixing."""

_FEWEST_MESSAGES = 10
"""Fewest messages for each worker at which a change is recommended."""


@dataclass(frozen=True)
class Advice:
    """One recommendation."""

    what: str
    """The recommendation in a few words; begins with "nothing" if no change is needed."""
    code: str
    """The line of code that follows the recommendation."""
    why: str
    """The reason, in some sentences."""

    @property
    def is_nothing(self) -> bool:
        """Whether no change is needed."""
        return self.what.startswith("nothing")


def advise(
    job: Job, costs: Sequence[Cost], messages: int, p1: float, *, hottest_is_null: bool = False
) -> Advice:
    """Recommend how to handle the skew of a job.

    Args:
        job: The job, with its workers.
        costs: The costs of all strategies.
        messages: The number of messages.
        p1: The hottest key's share of the messages.
        hottest_is_null: Whether the hottest key is null, or one of its columns is.
    """
    slowdowns = {cost.strategy: cost.slowdown for cost in costs}
    by_key, balanced = slowdowns[KEY_GROUPING], slowdowns[CONSISTENT_GROUPING]
    work, code = job.work, job.balanced_code
    if code is None:
        return Advice(work.recommendation, job.spark_code, work.explanation)
    if messages < _FEWEST_MESSAGES * job.workers:
        why = f"{messages:,} messages are too few for {worker_count(job.workers)} to matter."
        return Advice("nothing: there is hardly any data", job.spark_code, why)
    if by_key < WORTH * balanced:
        return _not_skewed(job, by_key)
    if hottest_is_null and p1 * job.workers > 1:
        return _all_nulls(job) if p1 == 1 else _some_nulls(job, by_key, p1)
    return Advice(work.recommendation, code, _reason(job, by_key, balanced, p1))


def _not_skewed(job: Job, by_key: float) -> Advice:
    return Advice(
        f"nothing: not skewed for {worker_count(job.workers)}",
        job.spark_code,
        f"With key grouping the slowest task takes {by_key:.2f} times as long as with an ideal "
        "distribution. A change is recommended only if it makes the slowest task at least "
        f"{WORTH:g} times as fast.",
    )


def _reason(job: Job, by_key: float, balanced: float, p1: float) -> str:
    if p1 * job.workers > 1:
        cause = (
            f"The hottest key alone is enough work for {p1 * job.workers:.1f} workers, so it has "
            "to be split."
        )
    elif job.capacities is not None:
        cause = "Key grouping ignores the speeds of the workers."
    else:
        cause = "No key is too large for one worker, but several large keys hash to the same one."
    return (
        f"The slowest task takes {by_key:.1f} times as long as with an ideal distribution; "
        f"balanced, {balanced:.2f} times. {cause} {job.work.explanation}"
    )


def _all_nulls(job: Job) -> Advice:
    return Advice(
        "check the column: all keys are null"
        if len(job.key) == 1
        else "check the columns: all keys have a null",
        job.counting_code,
        "There are no keys to group by. Check the name of the column, and whether it is read with "
        "the right type.",
    )


def _some_nulls(job: Job, by_key: float, p1: float) -> Advice:
    """Recommend filtering: a hot null is usually a missing key, and no null matches in a join."""
    if job.work == JOIN:
        kept = (
            "A null never matches. An inner join drops these rows anyway; after a left join, add "
            "them with a union."
        )
    else:
        kept = f"If you need them, {job.balanced_code} distributes them over the workers."
    why = (
        f"The slowest task takes {by_key:.1f} times as long as with an ideal distribution, because "
        f"{100 * p1:.2f} % of the messages have a null in their key. {kept} Then examine the other "
        "rows: they may have hot keys too."
    )
    return Advice("filter the nulls, or check the column", job.code_without_nulls, why)
