"""Choose the version that a batch of a real-time query follows.

The number of a batch and the newest version enter; the pin of the batch leaves. A batch that is
repeated after a restart follows the same version again.

A real-time query writes results while a batch runs, and notes at the end of the batch how far it
has read. If it is interrupted, a part of the results is written, and the repeated batch may end
earlier or later than the interrupted one. Therefore the query follows the version of the
interrupted batch until it has read again all messages that this batch can have read. Each message
then reaches the same worker as before, and each partial result that the interrupted batch wrote is
written again.
"""

import json
from dataclasses import dataclass, replace
from typing import Self

_KEPT = 4
"""The number of latest batches whose pins are kept. After a restart, a query repeats its last batch
or, if the end of the batch before was not on disk yet, the last two."""


@dataclass(frozen=True)
class BatchPins:
    """The pins of the latest batches of a query.

    >>> pins = BatchPins().begin(batch=0, newest=7).begin(batch=1, newest=8)
    >>> pins.current
    8
    >>> repeated = pins.begin(batch=1, newest=9)
    >>> repeated.current, repeated.begin(batch=2, newest=9).current
    (8, 8)
    >>> repeated.begin(batch=2, newest=9, caught_up=repeated.restarts).current
    9
    """

    pins: tuple[tuple[int, int], ...] = ()
    """Pairs of a batch and its pin, in the order of the batches."""
    restarts: int = 0
    """The number of times at which a batch was repeated."""
    is_held: bool = False
    """Whether the query follows the version of an interrupted batch."""

    @property
    def current(self) -> int:
        """The pin of the latest batch."""
        return self.pins[-1][1]

    def begin(self, batch: int, newest: int, caught_up: int = 0) -> Self:
        """Return the pins at the start of a batch.

        Args:
            batch: The number of the batch.
            newest: The pin of the newest version.
            caught_up: The value of `restarts` after which the query has read again all messages
                that an interrupted batch can have read.
        """
        before = tuple((number, pin) for number, pin in self.pins if number < batch)[1 - _KEPT :]
        interrupted = dict(self.pins).get(batch)
        if interrupted is not None:
            pins = (*before, (batch, interrupted))
            return replace(self, pins=pins, restarts=self.restarts + 1, is_held=True)
        is_held = self.is_held and caught_up < self.restarts and bool(before)
        pin = before[-1][1] if is_held else newest
        return replace(self, pins=(*before, (batch, pin)), is_held=is_held)

    def to_json(self) -> str:
        return json.dumps([self.pins, self.restarts, self.is_held], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the pins that `to_json` wrote; raise a ValueError for any other text."""
        try:
            pins, restarts, is_held = json.loads(text)
            return cls(tuple((int(b), int(p)) for b, p in pins), int(restarts), bool(is_held))
        except (TypeError, ValueError) as error:
            raise ValueError(f"these are not the pins of batches: {error!r}") from error
