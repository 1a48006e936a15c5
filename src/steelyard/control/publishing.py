"""Write what the control loop decided and learned.

Plans, owners and slots enter; versions, `learned.json` and the history leave. Errors of the control
path are logged and never end the query: balance suffers, results do not.
"""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.control.history import Slot
from steelyard.control.store import ControlStore
from steelyard.control.version import ControlVersion
from steelyard.plans import RoutingPlan

_log = logging.getLogger("steelyard")

_KEPT_SLOTS = 1000
"""Slots that stay in memory."""


class Publisher:
    """Publishes to a control path, or, without one, to this process alone.

    >>> publisher = Publisher(None)
    >>> publisher.publish(None, np.zeros(4, np.int32)).number
    1
    >>> publisher.publish(None, np.zeros(4, np.int32)).number
    1
    >>> publisher.publish(None, np.ones(4, np.int32)).number
    2
    """

    def __init__(self, store: ControlStore | None) -> None:
        self.store = store
        self.version: ControlVersion | None = None
        """The version that sources should follow; None before the first."""
        self.history: deque[Slot] = deque(maxlen=_KEPT_SLOTS)
        self._unwritten: set[str] = set()

    @property
    def number(self) -> int:
        """The number of the version; 0 before the first."""
        return 0 if self.version is None else self.version.number

    def learned(self) -> dict[str, Any]:
        """Return what an earlier control loop saved; nothing if it cannot be read."""
        return (self.store.learned() if self.store is not None else None) or {}

    def newest(self) -> ControlVersion | None:
        """Return the newest version on the control path."""
        return self.store.newest() if self.store is not None else None

    def drained(self) -> set[int]:
        """Return the workers that get no work."""
        return self.store.drained() if self.store is not None else set()

    def begin(
        self, newest: ControlVersion | None, plan: RoutingPlan | None, owners: NDArray[np.int32]
    ) -> None:
        """Continue with the newest version if it holds this plan and these owners.

        Otherwise publish them, unless a query uses the path: it may be another one, and the path
        is not written to before this query has claimed it.
        """
        if newest is not None and newest.says(plan, owners):
            self.version = newest
        elif self.store is None or not self.store.owner():
            self.publish(plan, owners)

    def publish(self, plan: RoutingPlan | None, owners: NDArray[np.int32]) -> ControlVersion:
        """Return the version of this plan and these owners, written if it is new or was lost."""
        last = self.version
        latest = self.store.latest() if self.store is not None else self.number
        if last is not None and latest == last.number and last.says(plan, owners):
            return last
        self.version = ControlVersion(max(latest, self.number) + 1, plan, owners)
        if self.store is not None:
            with self._despite_errors("newest version"):
                self.store.publish(self.version)
        return self.version

    def record(self, slot: Slot, learned: dict[str, Any]) -> None:
        """Add a slot to the history and save what was learned until its end."""
        if self.store is not None:
            with self._despite_errors("file learned.json"):
                self.store.keep_identity()
                self.store.save_learned(learned)
            with self._despite_errors("history"):
                self.store.add_history(slot.to_json())
        self.history.append(slot)

    @contextmanager
    def _despite_errors(self, what: str) -> Iterator[None]:
        """Log the first of several errors in a row, and continue."""
        try:
            yield
            self._unwritten.discard(what)
        except OSError as error:
            if what not in self._unwritten:
                self._unwritten.add(what)
                _log.warning("control: the %s cannot be written: %s", what, error)
