"""Compute what Spark's adaptive execution does with the shuffle partitions of a join.

Bytes of shuffle partitions enter; the tasks that read them leave. Adaptive execution splits
partitions that are much larger than the others, and merges neighbors that are small.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

KB, MB = 2**10, 2**20

SHUFFLE_PARTITIONS = 200
"""Spark's default number of shuffle partitions."""

_SMALL, _MERGED = 0.2, 1.2
"""Spark merges the parts of a skewed partition below and up to these multiples of the target."""


@dataclass(frozen=True)
class Read:
    """What a task reads: the partitions from `first` to before `end`, or a part of one."""

    first: int
    end: int
    part: float = 1.0
    """The fraction that the task reads of the partition."""


@dataclass(frozen=True)
class AdaptiveExecution:
    """Settings of adaptive execution; the defaults are those of Spark.

    Args:
        advisory: Bytes that a task should have: `spark.sql.adaptive.advisoryPartitionSizeInBytes`.
        threshold: A partition below these bytes is never split:
            `spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes`.
        factor: Neither is one below this multiple of the median partition.
        least: A task with fewer bytes is merged with a neighbor:
            `spark.sql.adaptive.coalescePartitions.minPartitionSize`.
    """

    advisory: int = 64 * MB
    threshold: int = 256 * MB
    factor: float = 5.0
    least: int = MB

    def reads(
        self, sizes: Sequence[float], slots: int, maps: int, other: float = 0.0
    ) -> tuple[Read, ...]:
        """Return what each task of the join reads.

        >>> sizes = [40 * MB, 10 * MB, 300 * MB, 20 * MB, 30 * MB]
        >>> for read in AdaptiveExecution().reads(sizes, slots=4, maps=5):
        ...     print(read)
        Read(first=0, end=2, part=1.0)
        Read(first=2, end=3, part=0.2)
        Read(first=2, end=3, part=0.2)
        Read(first=2, end=3, part=0.2)
        Read(first=2, end=3, part=0.2)
        Read(first=2, end=3, part=0.2)
        Read(first=3, end=5, part=1.0)

        Args:
            sizes: Bytes of each shuffle partition of the table.
            slots: Task slots.
            maps: Tasks that write the shuffle; Spark splits a partition only between their outputs.
            other: Bytes of each shuffle partition of the other table.
        """
        parts = dict(self._split(sizes, maps))
        both = [size + other for size in sizes]
        target = max(min(sum(both) / slots, self.advisory), self.least)
        found: list[Read] = []
        start = 0
        for skewed in (*sorted(parts), len(sizes)):
            found += self._merged(both, start, skewed, target)
            found += [Read(skewed, skewed + 1, part) for part in parts.get(skewed, ())]
            start = skewed + 1
        return tuple(found)

    def _split(self, sizes: Sequence[float], maps: int) -> Iterator[tuple[int, list[float]]]:
        """Yield each skewed partition that can be split, and the fractions of its parts."""
        limit = max(self.threshold, self.factor * float(np.median(sizes)))
        others = [size for size in sizes if size <= limit]
        target = max(self.advisory, float(np.mean(others)) if others else 0.0)
        for place, size in enumerate(sizes):
            if size > limit:
                parts = _parts(maps, target * maps / size)
                if len(parts) > 1:
                    yield place, [part / maps for part in parts]

    def _merged(
        self, sizes: Sequence[float], start: int, end: int, target: float
    ) -> Iterator[Read]:
        """Merge neighbors up to the target size; a very small rest joins its smaller neighbor."""
        groups: list[tuple[int, float]] = []  # the end of each group, and its bytes
        size = 0.0
        for place in range(start, end):
            before = groups[-1][1] if groups else 0.0
            if size and size + sizes[place] > target:
                if size >= self.least:
                    groups.append((place, size))
                    size = 0.0
                elif 0 < before < sizes[place]:
                    groups[-1] = (place, before + size)
                    size = 0.0
            size += sizes[place]
        if groups and size < self.least:
            groups[-1] = (end, groups[-1][1] + size)
        elif size:
            groups.append((end, size))
        for last, _ in groups:
            yield Read(start, last)
            start = last


def _parts(maps: int, target: float) -> list[int]:
    """Divide the equal outputs of map tasks into parts of about `target` outputs.

    >>> _parts(10, 4.0), _parts(3, 0.5), _parts(4, 9.0)
    ([4, 4, 2], [1, 1, 1], [4])
    """
    full = max(1, int(target))
    parts: list[int] = []
    for start in range(0, maps, full):
        size = min(full, maps - start)
        last = parts[-1] if parts else None
        if last is not None and (
            size + last < _MERGED * target or min(size, last) < _SMALL * target
        ):
            parts[-1] += size
        else:
            parts.append(size)
    return parts
