"""Write the decisions and the saved state of the control loop.

Plans, owners and slots enter; versions, `learned.json` and the history leave. An error of the
control path is logged and never ends the query: only the balance gets worse, results stay correct.
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
"""The number of slots that are kept in memory."""


class Publisher:
    """The writer of versions and of the history, to a control path or, without one, to memory.

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
        """The number of the current version; 0 before the first."""
        return 0 if self.version is None else self.version.number

    def learned(self) -> dict[str, Any]:
        """Return the state that an earlier control loop saved; {} if it cannot be read."""
        return (self.store.learned() if self.store is not None else None) or {}

    def newest(self) -> ControlVersion | None:
        """Return the newest version on the control path."""
        return self.store.newest() if self.store is not None else None

    def drained(self) -> set[int]:
        """Return the drained workers, which get no work."""
        return self.store.drained() if self.store is not None else set()

    def begin(
        self, newest: ControlVersion | None, plan: RoutingPlan | None, owners: NDArray[np.int32]
    ) -> None:
        """Continue with the newest version if it holds this plan and these owners.

        Otherwise publish a version with them, unless a query uses the control path. That may be
        another query, so nothing is published before this query has claimed the path.
        """
        if newest is not None and newest.matches(plan, owners):
            self.version = newest
        elif self.store is None or not self.store.owner():
            self.publish(plan, owners)

    def publish(self, plan: RoutingPlan | None, owners: NDArray[np.int32]) -> ControlVersion:
        """Return a version with this plan and these owners; write it if it is new or was lost."""
        last = self.version
        latest = self.store.latest() if self.store is not None else self.number
        if last is not None and latest == last.number and last.matches(plan, owners):
            return last
        self.version = ControlVersion(max(latest, self.number) + 1, plan, owners)
        if self.store is not None:
            with self._log_errors("newest version"):
                self.store.publish(self.version)
        return self.version

    def record(self, slot: Slot, learned: dict[str, Any]) -> None:
        """Add a slot to the history, and save the state of the control loop at its end."""
        if self.store is not None:
            with self._log_errors("file learned.json"):
                self.store.keep_identity()
                self.store.save_learned(learned)
            with self._log_errors("history"):
                self.store.add_history(slot.to_json())
        self.history.append(slot)

    @contextmanager
    def _log_errors(self, target: str) -> Iterator[None]:
        """Log an OSError and continue; of several in a row, log only the first."""
        try:
            yield
            self._unwritten.discard(target)
        except OSError as error:
            if target not in self._unwritten:
                self._unwritten.add(target)
                _log.warning("control: the %s cannot be written: %s", target, error)
