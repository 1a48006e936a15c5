"""Compute an examination.

Counts of keys, a job and the hot keys over time enter; an `Examination` leaves.
"""

import math
from collections.abc import Callable, Iterator

from steelyard.doctor.advice import advise
from steelyard.doctor.costs import Cost, costs
from steelyard.doctor.examination import Examination, HotKey
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import KeyCounts
from steelyard.doctor.periods import OverTime
from steelyard.doctor.skew import entropy, zipf_exponent
from steelyard.doctor.strategies import compared
from steelyard.doctor.work import JOIN


def diagnose(
    counts: KeyCounts,
    job: Job,
    *,
    source: str = "",
    over_time: OverTime | None = None,
    is_sample: bool = False,
    watch: Callable[[str], None] = lambda step: None,
) -> Examination:
    """Compute the skew of the keys, the cost of each strategy and the advice.

    Args:
        counts: Counts of all keys.
        job: The work on the rows of a key, and its workers.
        source: Name of the data, for the heading.
        over_time: The hottest keys over time, if a time column was named.
        is_sample: Whether the messages are a sample of more.
        watch: Called with the name of each strategy before its cost is computed.
    """
    found = tuple(_watched_costs(counts, job, watch))
    p1 = counts.hottest / counts.messages
    hottest_is_null = None in counts.top[0].name
    return Examination(
        source=source,
        key=job.key,
        workers=job.workers,
        capacities=job.capacities,
        work=job.work,
        is_sample=is_sample,
        messages=counts.messages,
        keys=counts.keys,
        p1=p1,
        top10=counts.of_first(10) / counts.messages,
        top=_hot_keys(counts),
        curve=counts.curve(),
        zipf=zipf_exponent(counts),
        entropy=entropy(counts),
        most_entropy=math.log2(counts.keys),
        over_time=over_time,
        costs=found,
        row_time=job.row_time,
        row_bytes=job.row_bytes if job.work == JOIN else None,
        advice=advise(job, found, counts.messages, p1, hottest_is_null=hottest_is_null),
    )


def _watched_costs(counts: KeyCounts, job: Job, watch: Callable[[str], None]) -> Iterator[Cost]:
    pending = costs(counts, job)
    for strategy in compared(job.work.name):
        watch(strategy.name)
        yield next(pending)


def _hot_keys(counts: KeyCounts) -> tuple[HotKey, ...]:
    return tuple(
        HotKey(top.name, top.messages, top.messages / counts.messages) for top in counts.top
    )
