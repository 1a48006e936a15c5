"""The assignment of virtual workers to workers.

Moves enter; the owner of every virtual worker leaves. The number of virtual workers never changes,
so a virtual worker keeps its share of the stream when it moves to another worker.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.showing import Bars, card, counted, paragraph, picture
from steelyard.validation import require_whole


@dataclass(frozen=True)
class Move:
    """One virtual worker that moves from `giver` to `taker`."""

    virtual: int
    giver: int
    taker: int


class Assignment:
    """The owner of every virtual worker, and the order in which each worker received its own.

    Workers keep their numbers when other workers leave. A worker that joins gets the number that
    the caller passes, or the largest number so far plus one.

    >>> assignment = Assignment.equal(workers=2, each=3)
    >>> assignment
    Assignment(2 workers, 6 virtual workers, 3 each)
    >>> assignment.owned(1)
    [3, 4, 5]
    >>> assignment.give(giver=1, taker=0, count=2)
    [Move(virtual=5, giver=1, taker=0), Move(virtual=4, giver=1, taker=0)]
    >>> assignment.owners
    array([0, 0, 0, 1, 0, 0], dtype=int32)
    """

    def __init__(self, owned: Mapping[int, Iterable[int]]) -> None:
        self._owned: dict[int, list[int]] = {
            int(w): list(map(int, virtuals)) for w, virtuals in owned.items()
        }
        everything = sorted(virtual for virtuals in self._owned.values() for virtual in virtuals)
        if not self._owned:
            raise ValueError("an assignment needs at least one worker, got none")
        if everything != list(range(len(everything))):
            raise ValueError(
                "every virtual worker must belong to exactly one worker, and virtual workers must "
                "have the numbers 0, 1, 2, ..."
            )
        self._owners = np.empty(len(everything), np.int32)
        for worker, virtuals in self._owned.items():
            self._owners[virtuals] = worker

    @classmethod
    def equal(cls, workers: int, each: int) -> Self:
        """Return the assignment in which every worker owns `each` virtual workers."""
        require_whole("workers", workers, least=1)
        require_whole("each", each, least=1)
        return cls({w: range(w * each, (w + 1) * each) for w in range(workers)})

    @property
    def workers(self) -> list[int]:
        """The numbers of the workers."""
        return list(self._owned)

    @property
    def virtual_workers(self) -> int:
        """The number of virtual workers."""
        return self._owners.size

    @property
    def owners(self) -> NDArray[np.int32]:
        """A copy of the owner of every virtual worker: `owners[virtual]` is a worker."""
        return self._owners.copy()

    def owned(self, worker: int) -> list[int]:
        """Return the virtual workers of a worker, the one it has owned longest first."""
        return list(self._owned[self._known(worker)])

    def count(self, worker: int) -> int:
        """Return the number of virtual workers that a worker owns."""
        return len(self._owned[self._known(worker)])

    def give(self, giver: int, taker: int, count: int = 1) -> list[Move]:
        """Move the `count` newest virtual workers of the giver to the taker.

        The taker appends them to its own.
        """
        require_whole("count", count, least=0, most=self.count(giver))
        if self._known(taker) == giver:
            raise ValueError(f"worker {giver} cannot give virtual workers to itself")
        moves = []
        for _ in range(count):
            virtual = self._owned[giver].pop()
            self._owned[taker].append(virtual)
            self._owners[virtual] = taker
            moves.append(Move(virtual, giver, taker))
        return moves

    def add_worker(self, worker: int | None = None) -> list[Move]:
        """Add a worker with the mean number of virtual workers.

        The others give them in proportion to the number that each owns.

        Args:
            worker: The number of the new worker; None: the largest number so far plus one.
        """
        if worker is None:
            worker = max(self._owned) + 1
        require_whole("worker", worker, least=0)
        if worker in self._owned:
            raise ValueError(f"worker {worker} exists already; the workers are {self.workers}")
        others = self.workers
        counts = [self.count(other) for other in others]
        shares = _in_proportion(self.virtual_workers // (len(others) + 1), counts)
        self._owned[int(worker)] = []
        return [
            move
            for other, share in zip(others, shares, strict=True)
            for move in self.give(other, worker, share)
        ]

    def remove_worker(self, worker: int) -> list[Move]:
        """Remove a worker; the others take its virtual workers in proportion to those they own.

        No other virtual worker moves.
        """
        leaving = self.count(worker)
        others = [other for other in self._owned if other != worker]
        if not others:
            raise ValueError(f"worker {worker} is the last worker and cannot be removed")
        shares = _in_proportion(leaving, [self.count(other) for other in others])
        moves = [
            move
            for other, share in zip(others, shares, strict=True)
            for move in self.give(worker, other, share)
        ]
        del self._owned[worker]
        return moves

    def _known(self, worker: int) -> int:
        if worker not in self._owned:
            raise ValueError(f"there is no worker {worker}; the workers are {self.workers}")
        return worker

    def copy(self) -> "Assignment":
        """Return an independent copy."""
        return Assignment(self._owned)

    def save(self) -> dict[str, Any]:
        """Return the assignment as a dictionary for JSON, order included."""
        return {
            "workers": self.workers,
            "owned": [list(virtuals) for virtuals in self._owned.values()],
        }

    @classmethod
    def resume(cls, saved: Mapping[str, Any]) -> Self:
        """Return the assignment that `save` described."""
        return cls(dict(zip(saved["workers"], saved["owned"], strict=True)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Assignment) and self._owned == other._owned

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Assignment({self._described})"

    def _repr_html_(self) -> str:
        """Return a picture of the number of virtual workers of each worker, for a notebook."""
        counts = [len(virtuals) for virtuals in self._owned.values()]
        bars = Bars("virtual workers of each worker", counts)
        names = (f"worker {self.workers[0]:,}", f"worker {self.workers[-1]:,}")
        mean = self.virtual_workers / len(counts)
        return card(
            "Assignment", picture([bars], names, mean, f"mean: {mean:.1f}"),
            paragraph(f"{self._described}."),
        )  # fmt: skip

    @property
    def _described(self) -> str:
        counts = [len(virtuals) for virtuals in self._owned.values()]
        least, most = min(counts), max(counts)
        each = f"{most:,} each" if least == most else f"{least:,} to {most:,} each"
        workers = counted(len(counts), "worker")
        return f"{workers}, {counted(self.virtual_workers, 'virtual worker')}, {each}"


def _in_proportion(total: int, weights: Sequence[int]) -> list[int]:
    """Split `total` into whole numbers in proportion to `weights`; evenly if all weights are 0."""
    whole = sum(weights)
    if whole == 0:
        weights = [1] * len(weights)
        whole = len(weights)
    shares = [total * weight // whole for weight in weights]
    remainders = [total * weight % whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-remainders[i], i))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares
