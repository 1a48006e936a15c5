"""Split a stream into slots.

Chunks of a stream enter; the messages of each slot leave, with the hashes of their keys.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.datasets.message_stream import Chunk, Stream
from steelyard.hashing import Hashes, hash_keys


class SlotMessages(NamedTuple):
    """Messages of one slot, with the hashes of their keys."""

    keys: NDArray[np.uint32]
    times: NDArray[np.float64]
    hashes: Hashes


def slots_until(end: float, slot: float) -> int:
    """Return the number of slots up to the last message, with the rounding of `messages_by_slot`.

    The last slot ends after `end`, the time of the last message.
    """
    slots = int(end / slot) + 1
    while slots * slot <= end:
        slots += 1
    return slots


def messages_by_slot(stream: Stream, slot: float, slots: int) -> Iterator[SlotMessages]:
    """Yield the messages of each slot; a slot without messages is empty."""
    number = 0
    pieces: list[SlotMessages] = []
    for chunk in stream.chunks():
        if not chunk.times.size:
            continue
        *complete, rest = _cut(chunk, number, slot)
        for piece in complete:
            yield _joined([*pieces, piece])
            pieces = []
            number += 1
        pieces.append(rest)
    while number < slots:
        yield _joined(pieces)
        pieces = []
        number += 1


def _cut(chunk: Chunk, number: int, slot: float) -> Iterator[SlotMessages]:
    """Yield the messages of each slot from `number` on; the last piece ends with the chunk."""
    keys, times = chunk.keys, chunk.times
    hashes = hash_keys(pa.array(keys, pa.int64()))
    # `slots_until` computes the same products, so rounding cannot lose a message between slots.
    ends = np.arange(number + 1, int(times[-1] / slot) + 3) * slot
    begin = 0
    for cut in times.searchsorted(ends).tolist():
        yield SlotMessages(keys[begin:cut], times[begin:cut], hashes[begin:cut])
        if cut == times.size:
            break
        begin = cut


def _joined(pieces: list[SlotMessages]) -> SlotMessages:
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return SlotMessages(np.empty(0, np.uint32), np.empty(0), np.empty(0, np.uint64))
    return SlotMessages(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
