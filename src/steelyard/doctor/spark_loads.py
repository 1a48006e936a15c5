"""Compute the load of each task under Spark's own remedies for skew.

Counts of keys and a job enter; loads and copies leave: of more partitions by key, of an aggregate
that Spark combines before the shuffle, and of a join under adaptive execution.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from steelyard.doctor.adaptive import KB, MB, SHUFFLE_PARTITIONS, AdaptiveExecution, Read
from steelyard.doctor.key_counts import FACTORS
from steelyard.doctor.loads import Floats, TaskLoads, Workload, loads_by_round_robin

_CLOSE = 1.03
"""Fewer partitions are chosen if the stage takes at most this multiple of the shortest time."""

_SMALLEST_TASK = 16 * KB

_FILE_SPLIT = 128 * MB
"""Bytes of a file that a task reads: `spark.sql.files.maxPartitionBytes`."""

_ADAPTIVE = "spark.sql.adaptive"


def loads_by_more_partitions(workload: Workload) -> TaskLoads:
    """Use more partitions than workers: the fewest that take hardly longer than the best."""
    candidates = {SHUFFLE_PARTITIONS, *(factor * workload.workers for factor in FACTORS)}
    numbers = sorted(number for number in candidates if number > workload.workers)
    found = [TaskLoads(workload.counts.partitions(number), 1.0, 1) for number in numbers]
    return _first_close(workload, found)


def loads_by_map_side(workload: Workload) -> TaskLoads:
    """Combine the rows of each map task; the copies of a key are its partial results."""
    even = loads_by_round_robin(workload)
    sent = float(f"{even.copies * workload.counts.keys:.2g}")
    note = f"The map tasks shuffle about {sent:,.0f} partial results, not all rows."
    return TaskLoads(even.messages, even.copies, even.hottest_copies, note)


def loads_by_adaptive_execution(workload: Workload) -> TaskLoads:
    """Let Spark split and merge its default number of shuffle partitions."""
    return _adapted(workload, SHUFFLE_PARTITIONS, AdaptiveExecution())


def loads_by_smaller_tasks(workload: Workload) -> TaskLoads:
    """Let adaptive execution aim at several tasks for each task slot."""
    found = [_smaller_tasks(workload, factor) for factor in FACTORS]
    return _first_close(workload, found)


def _first_close(workload: Workload, found: Sequence[TaskLoads]) -> TaskLoads:
    """Return the first loads whose stage takes hardly longer than the shortest one."""
    times = [workload.time(loads.messages) for loads in found]
    return next(f for f, time in zip(found, times, strict=True) if time <= _CLOSE * min(times))


def _smaller_tasks(workload: Workload, tasks_per_slot: int) -> TaskLoads:
    share = workload.counts.messages * workload.job.row_bytes / workload.workers
    aim = max(_SMALLEST_TASK, min(64 * MB, int(share / tasks_per_slot)))
    aim -= aim % (MB if aim >= MB else KB)
    size = f"{aim // MB}MB" if aim >= MB else f"{aim // KB}KB"
    partitions = max(SHUFFLE_PARTITIONS, FACTORS[-1] * workload.workers)
    settings = {
        f"{_ADAPTIVE}.advisoryPartitionSizeInBytes": size,
        f"{_ADAPTIVE}.skewJoin.skewedPartitionThresholdInBytes": size,
    }
    if aim < MB:
        settings[f"{_ADAPTIVE}.coalescePartitions.minPartitionSize"] = size
    if partitions != SHUFFLE_PARTITIONS:
        settings["spark.sql.shuffle.partitions"] = str(partitions)
    adaptive = AdaptiveExecution(aim, aim, least=min(aim, MB))
    return _adapted(workload, partitions, adaptive, settings)


def _adapted(
    workload: Workload,
    partitions: int,
    adaptive: AdaptiveExecution,
    settings: dict[str, str] | None = None,
) -> TaskLoads:
    messages = workload.counts.partitions(partitions)
    sizes: Floats = messages.astype(np.float64) * workload.job.row_bytes
    other = (workload.job.estimates.other_bytes or 0) / partitions
    maps = max(workload.workers, int(sizes.sum() / _FILE_SPLIT))
    reads = adaptive.reads(sizes.tolist(), workload.workers, maps, other)
    sums = np.append(0, messages.cumsum())
    tasks = [float(sums[read.end] - sums[read.first]) * read.part for read in reads]
    parts = Counter(read.first for read in reads if read.part < 1)
    return TaskLoads(
        tasks,
        # Keys are distributed evenly over the partitions, so each partition has the mean number.
        copies=1 + (parts.total() - len(parts)) / partitions,
        hottest_copies=max(1, parts[int(messages.argmax())]),
        note=_note(reads, parts, sizes, adaptive),
        settings=settings or {},
    )


def _note(
    reads: Sequence[Read], parts: Counter[int], sizes: Floats, adaptive: AdaptiveExecution
) -> str:
    """Say what adaptive execution does."""
    before, after = sizes.size - len(parts), len(reads) - parts.total()
    merged = f"merges {before:,} partitions into {after:,} tasks"
    if before == after:
        merged = f"keeps {before:,} partitions"
    largest = f"{sizes.max() / MB:,.0f} MB"
    if parts:
        what = f"the largest, about {largest}" if len(parts) == 1 else f"{len(parts):,} large ones"
        done = f"splits {what}, into {parts.total():,} tasks, and {merged}"
    else:
        limit = max(adaptive.threshold, adaptive.factor * float(np.median(sizes))) / MB
        done = f"{merged}; none is split, as the largest has {largest} (limit {limit:,.0f} MB)"
    return f"Adaptive execution {done}."
