"""Find out when a restarted real-time query has read again what it had read before.

The offsets of finished batches enter; a note in the control path leaves.
"""

import json
from collections.abc import Sequence
from contextlib import suppress

from steelyard.control.store import ControlStore

Offsets = dict[str, dict[str, int]]


class CatchingUp:
    """The offsets that a query must reach after a restart, before it may follow a new version.

    An interrupted batch can have read the messages that were in the topics when the next run of the
    query ended its first batch, and no others.

    Args:
        store: The control path of the query.
    """

    def __init__(self, store: ControlStore) -> None:
        self._store = store
        self._run = ""
        self._goal: Offsets | None = None

    def finish_batch(
        self, query: str, run: str, end: Sequence[str | None], latest: Sequence[str | None]
    ) -> None:
        """Use the offsets of a finished batch, as JSON.

        Args:
            query: The query.
            run: The run of the query; every restart has a new one.
            end: The offsets at which the batch ended, of each source.
            latest: The offsets of the newest messages when the batch began, of each source.
        """
        if run != self._run:
            self._run, self._goal = run, None
        with suppress(OSError, ValueError):  # the query then follows the old version for longer
            if not self._store.is_repeating(query):
                return
            if self._goal is None:
                self._goal = _offsets(latest)
            if self._goal is not None and _reaches(_offsets(end), self._goal):
                self._store.set_caught_up(query)


def _offsets(texts: Sequence[str | None]) -> Offsets | None:
    """Return the offsets of every partition of every topic; None if some are unknown.

    >>> _offsets(['{"visits": {"0": 5}}', '{"visits": {"0": 7}}'])
    {'0 visits': {'0': 5}, '1 visits': {'0': 7}}
    """
    merged: Offsets = {}
    for source, text in enumerate(texts):
        found = json.loads(text) if text else None
        if not isinstance(found, dict):
            return None
        merged |= {f"{source} {topic}": partitions for topic, partitions in found.items()}
    return merged


def _reaches(end: Offsets | None, goal: Offsets) -> bool:
    """Return whether no partition ends before its goal.

    >>> _reaches({"visits": {"0": 5, "1": 7}}, {"visits": {"0": 5, "1": 6}})
    True
    >>> _reaches({"visits": {"0": 5}}, {"visits": {"0": 5, "1": 6}})
    False
    """
    if end is None:
        return False
    return all(
        end.get(topic, {}).get(partition, 0) >= offset
        for topic, partitions in goal.items()
        for partition, offset in partitions.items()
    )
