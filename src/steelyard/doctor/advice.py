"""Recommend one thing to do, with its line of code.

A job and the costs of strategies enter; a recommendation leaves. "Nothing" is one too.
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
"""With fewer messages for each worker no change is worth its trouble."""


@dataclass(frozen=True)
class Advice:
    """One recommendation."""

    what: str
    """In a few words; begins with "nothing" where nothing has to be done."""
    code: str
    why: str

    @property
    def is_nothing(self) -> bool:
        """Whether what Spark does itself is good enough."""
        return self.what.startswith("nothing")


def advise(
    job: Job, costs: Sequence[Cost], messages: int, p1: float, *, hottest_is_null: bool = False
) -> Advice:
    """Recommend what to do about the skew of a job.

    Args:
        job: The job, with its workers.
        costs: The costs of all strategies.
        messages: The number of messages.
        p1: The hottest key's share of the messages.
        hottest_is_null: Whether the hottest key is null, or a column of it.
    """
    slow_downs = {cost.strategy: cost.slow_down for cost in costs}
    by_key, balanced = slow_downs[KEY_GROUPING], slow_downs[CONSISTENT_GROUPING]
    work, code = job.work, job.balanced_code
    if code is None:
        return Advice(work.recommendation, job.spark_code, work.explanation)
    if messages < _FEWEST_MESSAGES * job.workers:
        why = f"{messages:,} messages are too few for {job.workers:,} workers to matter."
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
        f"By key the slowest task needs {by_key:.2f} times what it should; below {WORTH:g} "
        "times what can be had a change is not worth its trouble.",
    )


def _reason(job: Job, by_key: float, balanced: float, p1: float) -> str:
    if p1 * job.workers > 1:
        cause = f"No hash helps: the hottest key alone is {p1 * job.workers:.1f} workers' work."
    elif job.capacities is not None:
        cause = "Equal parts are too much for the slow workers, and some parts are not equal."
    else:
        cause = "No key is too much for a worker, but too many large ones fall together."
    return (
        f"By key the slowest task needs {by_key:.1f} times what it should, balanced "
        f"{balanced:.2f}. {cause} {job.work.explanation}"
    )


def _all_nulls(job: Job) -> Advice:
    return Advice(
        "check the column: all keys are null"
        if len(job.key) == 1
        else "check the columns: all keys have a null",
        job.counting_code,
        "There is nothing to group by. The column may be another than was meant, or be read "
        "as another type than it has.",
    )


def _some_nulls(job: Job, by_key: float, p1: float) -> Advice:
    """A null that is hot is most often no key at all; and in a join nulls never match."""
    if job.work == JOIN:
        kept = (
            "A null never matches: an inner join drops these rows anyway, and a left one can get "
            "them back by a union."
        )
    else:
        kept = f"If they are wanted, {job.balanced_code} shares them out."
    why = (
        f"By key the slowest task needs {by_key:.1f} times what it should, as {100 * p1:.2f} % of "
        f"the messages have a null in their key. {kept} Examine the others by themselves: there "
        "may be hot keys among them too."
    )
    return Advice("filter the nulls, or check the column", job.code_without_nulls, why)
