"""Reconstruct the owner of each virtual worker in each slot.

Slots enter; the owners in any slot leave. Every slot records its moves, but only some slots record
the owners. If no slot does, the giver of a virtual worker's first move is its first owner. Virtual
workers that never move are then assigned arbitrarily, in agreement with the counts of each worker.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.control.history import Slot

Owners = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The virtual workers in a slot; every array has one element for each of them."""

    owners: Owners
    homes: Owners
    """Their owners in the first known slot."""
    since: NDArray[np.int64]
    """Index of the first slot with the current owner; 0 at the start."""
    came: NDArray[np.bool_]
    """Whether they moved to their owner at the start of this slot."""
    takers: Owners
    """The workers that get them at the end of the slot; -1 if they stay."""


class Ownership:
    """The owners of virtual workers in consecutive slots.

    >>> from steelyard.dashboard.simulated import quiet_slot
    >>> first = quiet_slot(1, [2, 2], moves=((3, 1, 0),))
    >>> owners = Ownership([first, quiet_slot(2, [3, 1])])
    >>> owners.at(0).owners.tolist(), owners.at(1).owners.tolist()
    ([0, 0, 1, 1], [0, 0, 1, 0])
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._parts: list[_Part] = []
        begin = 0
        for place in range(1, len(slots) + 1):
            if place == len(slots) or not _follows(slots[place - 1], slots[place]):
                self._add(slots, begin, place)
                begin = place

    def _add(self, slots: Sequence[Slot], begin: int, end: int) -> None:
        """Add the slots from `begin`, split where recorded owners contradict the moves."""
        while begin < end:
            part = _Part.of(slots[begin:end], begin)
            self._parts.append(part)
            begin += part.length

    def at(self, place: int) -> Blocks:
        """Return the virtual workers in the slot at this index."""
        part = next(p for p in reversed(self._parts) if p.begin <= place)
        return part.at(place - part.begin)


@dataclass(frozen=True, eq=False)
class _Part:
    """Slots in which only moves change the owners."""

    begin: int
    length: int
    first: Owners
    moves: NDArray[np.int64]
    """Rows of slot (index from `begin`), virtual worker, giver and taker."""

    @classmethod
    def of(cls, slots: Sequence[Slot], begin: int) -> "_Part":
        moves = _moves(slots)
        first = _first_owners(slots, moves)
        length = len(slots)
        for place, slot in enumerate(slots):
            if slot.owners and place and (_replayed(first, moves, place) != slot.owners).any():
                length = place  # the recorded owners contradict the moves
                break
        return cls(begin, length, first, moves[moves[:, 0] < length])

    def at(self, place: int) -> Blocks:
        done = self.moves[self.moves[:, 0] < place]
        owners = _replayed(self.first, self.moves, place)
        since = np.zeros(owners.size, np.int64)
        since[done[:, 1]] = done[:, 0] + 1
        takers = np.full(owners.size, -1, np.int32)
        next_moves = self.moves[self.moves[:, 0] == place]
        takers[next_moves[:, 1]] = next_moves[:, 3]
        takers[takers == owners] = -1  # moved away and back
        before = _replayed(self.first, self.moves, place - 1) if place else owners
        return Blocks(owners, self.first, since, owners != before, takers)


def _follows(before: Slot, after: Slot) -> bool:
    """Return whether no slot is missing in between, and the workers are the same."""
    return after.slot == before.slot + 1 and _shape(before) == _shape(after)


def _shape(slot: Slot) -> tuple[int, int]:
    return len(slot.workers), virtual_workers(slot)


def virtual_workers(slot: Slot) -> int:
    """Return the number of virtual workers in a slot."""
    return sum(worker.virtual_workers for worker in slot.workers)


def _moves(slots: Sequence[Slot]) -> NDArray[np.int64]:
    """Return all moves, without impossible ones from a damaged file."""
    there, workers = virtual_workers(slots[0]), len(slots[0].workers)
    rows = [
        (place, *move)
        for place, slot in enumerate(slots)
        for move in slot.moves
        if 0 <= move[0] < there and 0 <= min(move[1:]) <= max(move[1:]) < workers
    ]
    return np.array(rows, np.int64).reshape(-1, 4)


def _replayed(first: Owners, moves: NDArray[np.int64], place: int) -> Owners:
    """Return the owners after the moves of all earlier slots."""
    done = moves[moves[:, 0] < place]
    owners = first.copy()
    owners[done[:, 1]] = done[:, 3]  # the last of several moves wins
    return owners


def _first_owners(slots: Sequence[Slot], moves: NDArray[np.int64]) -> Owners:
    """Return the owners in the first slot, from recorded owners and the moves before them."""
    there = virtual_workers(slots[0])
    fits = (place for place, slot in enumerate(slots) if len(slot.owners) == there and there)
    recorded = next(fits, None)
    known = np.full(there, -1, np.int32)
    if recorded is not None:
        known[:] = slots[recorded].owners
        moves = moves[moves[:, 0] < recorded]
    moved, firsts = np.unique(moves[:, 1], return_index=True)
    known[moved] = moves[firsts, 2]
    if recorded is None:
        _fill(known, [worker.virtual_workers for worker in slots[0].workers])
    return known


def _fill(owners: Owners, counts: Sequence[int]) -> None:
    """Assign virtual workers without an owner to workers that have fewer than their count."""
    has = np.bincount(owners[owners >= 0], minlength=len(counts))
    lacking = np.repeat(np.arange(len(counts)), np.maximum(0, np.array(counts) - has))
    unknown = np.flatnonzero(owners < 0)
    owners[unknown] = np.resize(lacking, unknown.size) if lacking.size else 0
