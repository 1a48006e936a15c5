"""Recommend one thing to do, with its code.

A job and the costs of strategies enter; a recommendation leaves. It is the cheapest change that is
almost as good as the best one, and it may be to change nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.doctor.adaptive import MB
from steelyard.doctor.costs import Cost
from steelyard.doctor.job import Job
from steelyard.doctor.plain_text import shown_number, worker_count
from steelyard.doctor.strategies import (
    CONSISTENT_GROUPING,
    KEY_GROUPING,
    MORE_PARTITIONS,
    REMEDIES,
    GroupingStrategy,
    of_spark,
)
from steelyard.doctor.work import JOIN
from steelyard.durations import shown_length

WORTH = 1.25
"""Smallest slowdown worth fixing."""

ENOUGH = 1.15
"""Spark's own remedy is enough if the stage takes at most this multiple of the time of the best."""

BROADCAST_ANYWAY = 10 * MB
"""Spark broadcasts tables up to this size by default: `spark.sql.autoBroadcastJoinThreshold`."""

BROADCAST = 256 * MB
"""Size up to which broadcasting a table is recommended; it has to fit into each executor."""

_MOSTLY = 0.95
"""A stage is short if overhead lowers the slowdown of Spark's own code below this fraction."""

_FEWEST_MESSAGES = 10
"""Fewest messages for each worker at which a change is recommended."""


@dataclass(frozen=True)
class Advice:
    """One recommendation."""

    what: str
    """The recommendation in a few words; begins with "nothing" if no change is needed."""
    code: str
    """The code that follows the recommendation: one line, or several with Spark's settings."""
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
    options = _Options(job, messages, {cost.strategy: cost for cost in costs})
    other, is_hot = job.estimates.other_bytes, p1 * job.workers > 1
    if job.balanced_code is None:
        return Advice(job.work.recommendation, job.spark_code, job.work.explanation)
    if messages < _FEWEST_MESSAGES * job.workers:
        messages_ = "1 message is" if messages == 1 else f"{messages:,} messages are"
        why = f"{messages_} too few for {worker_count(job.workers)} to matter."
        return Advice("nothing: there is hardly any data", job.spark_code, why)
    if hottest_is_null and is_hot and p1 == 1:
        return _all_nulls(job)
    if job.work == JOIN and other is not None and other <= BROADCAST_ANYWAY:
        return _broadcast_anyway(job)
    if not options.is_worth_it:
        return _no_change(options)
    if hottest_is_null and is_hot:
        return _some_nulls(options, p1)
    if job.work == JOIN and other is not None and other <= BROADCAST:
        return _broadcast(options)
    if options.is_remedy_enough:
        return _remedy(options)
    return _balance(options, p1)


@dataclass(frozen=True)
class _Options:
    """The costs between which a recommendation chooses."""

    job: Job
    messages: int
    costs: dict[GroupingStrategy, Cost]

    @property
    def spark(self) -> Cost:
        """The cost of Spark's own code."""
        return self.costs[of_spark(self.job.work.name)]

    @property
    def ours(self) -> Cost:
        """The cost of Steelyard's code."""
        return self.costs[CONSISTENT_GROUPING]

    @property
    def remedy(self) -> Cost | None:
        """The cost of Spark's own remedy for this work, if there is one."""
        return next((self.costs[s] for s in REMEDIES if s in self.costs), None)

    @property
    def changes(self) -> list[Cost]:
        """The costs of the changes that can be recommended."""
        return [self.ours] if self.remedy is None else [self.remedy, self.ours]

    @property
    def is_worth_it(self) -> bool:
        """Whether the best change makes the stage faster by enough to matter."""
        best = min(cost.with_overhead for cost in self.changes)
        saving = (self.spark.with_overhead - best) * self.seconds
        return self._is_slow and saving >= self.job.work.least_saving

    @property
    def _is_slow(self) -> bool:
        best = min(cost.with_overhead for cost in self.changes)
        return self.spark.with_overhead >= WORTH * best

    @property
    def is_short(self) -> bool:
        """Whether a change would be worth it if rows took longer."""
        is_uneven = self.spark.slowdown >= WORTH * min(cost.slowdown for cost in self.changes)
        is_mostly_overhead = self.spark.with_overhead < _MOSTLY * self.spark.slowdown
        return self._is_slow or (is_uneven and is_mostly_overhead)

    @property
    def is_remedy_enough(self) -> bool:
        """Whether Spark's own remedy is almost as good as the best change."""
        remedy = self.remedy
        return remedy is not None and remedy.with_overhead <= ENOUGH * self.ours.with_overhead

    @property
    def slow(self) -> str:
        """How slow Spark's own code is."""
        return (
            f"The stage takes {self.spark.with_overhead:.1f} times as long as with an ideal "
            f"distribution, which needs {shown_length(self.seconds, digits=2)} at "
            f"{shown_number(self.job.row_time)} microseconds a row"
        )

    @property
    def seconds(self) -> float:
        """Time of all rows if they are balanced."""
        return (
            self.job.row_time * self.messages / sum(self.job.capacities or [self.job.workers]) / 1e6
        )


def _no_change(options: _Options) -> Advice:
    job, spark = options.job, options.spark
    if options.is_short:
        return Advice(
            "nothing: the stage is too short for it to matter",
            job.spark_code,
            f"With Spark's own code the stage takes {spark.slowdown:.1f} times as long as with an "
            f"ideal distribution, which needs {shown_length(options.seconds, digits=2)} at "
            f"{shown_number(job.row_time)} microseconds a row. If your rows take longer, pass "
            "their time (row_time).",
        )
    what = f"nothing: not skewed for {worker_count(job.workers)}"
    if job.work == JOIN and options.costs[KEY_GROUPING].slowdown >= WORTH:
        what = "nothing: Spark's adaptive execution balances the join"
    why = (
        f"With Spark's own code the stage takes {spark.with_overhead:.2f} times as long as with an "
        "ideal distribution. A change is recommended only if it makes the stage at least "
        f"{WORTH:g} times as fast."
    )
    return Advice(what, job.spark_code, why)


def _remedy(options: _Options) -> Advice:
    """Recommend to change a number and no code."""
    job, remedy, ours = options.job, options.remedy, options.ours
    assert remedy is not None
    reached = (
        f"{remedy.with_overhead:.2f} times; with Steelyard it would be {ours.with_overhead:.2f}"
    )
    if remedy.strategy == MORE_PARTITIONS:
        explanation = job.work.more_partitions.format(partitions=remedy.tasks, workers=job.workers)
        return Advice(
            f"use {remedy.tasks:,} partitions",
            job.code_with_partitions(remedy.tasks) or "",
            f"{options.slow}; with {remedy.tasks:,} partitions {reached}. A task slot that gets a "
            f"large partition runs fewer of the others. {explanation}",
        )
    return Advice(
        "let adaptive execution make smaller tasks",
        job.code_with_settings(remedy.settings),
        f"{options.slow}; with these settings {reached}. {_waves(options)}{remedy.note} The "
        "settings hold for all later queries of the session. The bytes are an estimate "
        "(row_bytes).",
    )


def _waves(options: _Options) -> str:
    """Explain a slow join of balanced tasks: there are a few more tasks than task slots."""
    tasks, slots = options.spark.tasks, options.job.workers
    if not slots < tasks < 2 * slots:
        return ""
    return f"Spark's own join has {tasks:,} tasks for {slots:,} task slots: some have to wait. "


def _balance(options: _Options, p1: float) -> Advice:
    """Recommend Steelyard."""
    job, remedy, ours = options.job, options.remedy, options.ours
    if p1 * job.workers > 1:
        cause = (
            f"The hottest key alone is enough work for {p1 * job.workers:.1f} workers, so it has "
            "to be split."
        )
    elif job.capacities is not None:
        cause = "Key grouping ignores the speeds of the workers."
    else:
        cause = "No key is too large for one worker, but several large keys hash to the same one."
    instead = ""
    if remedy is not None:
        name = f"{remedy.tasks:,} partitions"
        if remedy.strategy != MORE_PARTITIONS:
            name = "adaptive execution with smaller tasks"
        instead = f" With {name} it would be {remedy.with_overhead:.2f} times."
    return Advice(
        job.work.recommendation,
        job.balanced_code or "",
        f"{options.slow}; balanced, {ours.with_overhead:.2f} times. {cause}{instead} "
        f"{job.work.explanation}",
    )


def _broadcast_anyway(job: Job) -> Advice:
    return Advice(
        "nothing: Spark broadcasts the other DataFrame",
        job.spark_code,
        f"Spark broadcasts tables of at most {BROADCAST_ANYWAY // MB} MB, so df is not shuffled "
        "and its hot keys do not matter. If the query plan has no BroadcastHashJoin, "
        "Spark does not know the size: then write F.broadcast(other).",
    )


def _broadcast(options: _Options) -> Advice:
    return Advice(
        "broadcast the other DataFrame",
        options.job.broadcasting_code,
        f"{options.slow}. A broadcast join does not shuffle df, so its hot keys do not matter. The "
        "other DataFrame has to fit into the memory of the driver and of each executor.",
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


def _some_nulls(options: _Options, p1: float) -> Advice:
    """Recommend filtering: a hot null is usually a missing key, and no null matches in a join."""
    job = options.job
    if job.work == JOIN:
        kept = (
            "A null never matches. An inner join drops these rows before the shuffle; a left join "
            "sends them all to one task, so join the other rows and add these with a union."
        )
    else:
        kept = f"If you need them, {job.balanced_code} distributes them over the workers."
    why = (
        f"{options.slow}, because {100 * p1:.2f} % of the messages have a null in their key. "
        f"{kept} Then examine the other rows: they may have hot keys too."
    )
    return Advice("filter the nulls, or check the column", job.code_without_nulls, why)
