"""Show a simulation as a run: an outcome enters; slots leave, as a controller writes them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.control.history import HotKeyShare, Slot, WorkerSlot
from steelyard.datasets import Stream, named
from steelyard.simulator import (
    Change,
    Cluster,
    ConsistentGrouping,
    Outcome,
    SimulationSettings,
    simulate,
)

_STATES = {-1: "idle", 0: "normal", 1: "busy"}
_HOT_KEYS = 10


def slots_of(
    outcome: Outcome, stream: Stream, name_of: Callable[[int], str] = lambda key: f"key {key}"
) -> list[Slot]:
    """Return the slots of a simulation, with the virtual workers of its first source."""
    by_slot = outcome.every(outcome.slot)
    messages = by_slot.tally.arrivals[:-1].sum(axis=1)
    p50, p99 = by_slot.latency_quantile(0.5), by_slot.latency_quantile(0.99)
    owned, owners = _owned(outcome)
    hot_keys = _hot_keys(stream, outcome.slot, messages.size, name_of)
    so_far = messages.cumsum()
    slots, moved = [], 0
    for place in range(messages.size):
        moves = _moves_after(outcome, place)
        moved += len(moves)
        slots.append(
            Slot(
                slot=place + 1,
                batch=place,
                time=(place + 1) * outcome.slot,
                seconds=outcome.slot,
                messages=int(messages[place]),
                workers=_workers(by_slot, place, owned[place]),
                moves=moves,
                hot_keys=hot_keys[place],
                version=0,
                p50=_known(p50[place]),
                p99=_known(p99[place]),
                messages_so_far=int(so_far[place]),
                moves_so_far=moved,
                owners=owners if place == 0 and len(outcome.states) else (),
            )
        )
    return slots


def _moves_after(outcome: Outcome, place: int) -> tuple[tuple[int, int, int], ...]:
    """Return the moves that follow a slot, which the outcome lists under the next slot."""
    moves = outcome.first_moves[outcome.first_moves[:, 0] == place + 1][:, 1:]
    return tuple((virtual, giver, taker) for virtual, giver, taker in moves.tolist())


def _workers(by_slot: Outcome, place: int, owned: NDArray[np.int64]) -> tuple[WorkerSlot, ...]:
    """Return the workers in one slot of an outcome with one tick per slot."""
    arrivals = by_slot.tally.arrivals[place]
    workers = by_slot.cluster.workers
    states = by_slot.states[place] if len(by_slot.states) else np.zeros(workers, np.int8)
    return tuple(
        WorkerSlot(
            worker=worker,
            messages=int(arrivals[worker]),
            share=float(arrivals[worker] / max(1, arrivals.sum())),
            utilization=float(by_slot.utilization[place, worker]),
            state=_STATES[int(states[worker])],
            virtual_workers=int(owned[worker]),
            keys=int(by_slot.memory[place, worker]),
            p50=None,
            p99=None,
            service=float(by_slot.slot / by_slot.capacity[place, worker]),
            backlog=float(by_slot.queue_length[place, worker]),
        )
        for worker in range(workers)
    )


def _known(latency: float) -> float | None:
    return None if np.isnan(latency) else float(latency)


def _owned(outcome: Outcome) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Count virtual workers by slot and worker at the first source; return their first owners."""
    workers, slots = outcome.cluster.workers, outcome.moves.size
    total = round(float(outcome.owned[0].sum())) if outcome.owned.size else workers
    owners = np.repeat(np.arange(workers), total // workers)
    owned = np.tile(np.bincount(owners, minlength=workers), (slots, 1))
    for slot, _, giver, taker in outcome.first_moves.tolist():
        owned[slot:, giver] -= 1
        owned[slot:, taker] += 1
    return owned, tuple(owners.tolist())


def _hot_keys(
    stream: Stream, length: float, slots: int, name_of: Callable[[int], str]
) -> list[tuple[HotKeyShare, ...]]:
    """Return the most frequent keys of every slot."""
    pieces: list[list[NDArray[np.uint32]]] = [[] for _ in range(slots)]
    for chunk in stream.chunks():
        cuts = chunk.times.searchsorted(np.arange(1, slots) * length)
        for place, piece in enumerate(np.split(chunk.keys, cuts)):
            pieces[place].append(piece)
    found = []
    for parts in pieces:
        keys = np.concatenate(parts) if parts else np.empty(0, np.uint32)
        different, counts = np.unique(keys, return_counts=True)
        most = np.argsort(-counts, kind="stable")[:_HOT_KEYS]
        found.append(
            tuple(
                HotKeyShare(name_of(int(different[i])), float(counts[i] / keys.size)) for i in most
            )
        )
    return found


def example_slots(messages: int = 300_000, slots: int = 100) -> list[Slot]:
    """Simulate a short run: two of eight workers are slow, and one of them changes halfway."""
    made = named("zf", fraction=messages / 10_000_000, skew=1.0, keys=20_000)
    stream = replace(made, seconds=float(slots))
    unit = stream.messages / stream.seconds / 0.8 / 6.8
    before = tuple(unit * speed for speed in (1, 1, 1, 1, 1, 1, 0.4, 0.4))
    after = tuple(unit * speed for speed in (1, 1, 0.4, 1, 1, 1, 1, 0.4))
    change = Change(after, at_message=stream.messages // 2)
    outcome = simulate(
        stream,
        Cluster(before, (change,)),
        ConsistentGrouping(virtual_workers=40),
        SimulationSettings(slot=1.0, tick=1.0),
    )
    return slots_of(outcome, stream, lambda key: f"page-{key}")


def quiet_slot(
    number: int, owned: Sequence[int], moves: tuple[tuple[int, int, int], ...] = ()
) -> Slot:
    """Return a slot without messages, for examples."""
    workers = tuple(
        WorkerSlot(worker, 0, 0.0, 0.0, "normal", count, 0, None, None)
        for worker, count in enumerate(owned)
    )
    return Slot(number, number, float(number), 1.0, 0, workers, moves, (), 1)
