"""Reports on their way to the control loop: with the progress of the query that Spark tells of."""

import logging
import time
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from steelyard.control.controller import Controller
from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.control.store import ControlStore

_log = logging.getLogger("steelyard")


class ControlLoop:
    """Hands what one query observed to its controller."""

    def __init__(self, name: str, controller: Controller, store: ControlStore | None) -> None:
        self.sources, self.workers = f"{name}_sources", f"{name}_workers"
        self._controller, self._store = controller, store
        self._run: str | None = None
        self._has_warned = False

    def hear(self, progress: StreamingQueryProgress) -> None:
        """Take note of a micro-batch that is done."""
        run = str(progress.runId)
        if run != self._run:
            self._controller.begin_run()
            self._run = run
        observed = progress.observedMetrics
        sources = observed[self.sources]["reports"] or []
        self._controller.finish_batch(
            progress.batchId,
            progress.batchDuration / 1000,
            map(SourceReport.from_json, sources),
            map(WorkerReport.from_json, observed[self.workers]["reports"] or []),
            time.time(),
        )
        if self._store is not None and self._store.can_pin:
            self._check(self._store, str(progress.id), progress.batchId, bool(sources))
            self._store.forget_pins(str(progress.id), progress.batchId)

    def _check(self, store: ControlStore, query: str, batch: int, was_sent: bool) -> None:
        if was_sent and not store.is_pinned(query, batch) and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "no task has used the control path %s as the driver sees it: executors must see "
                "the same folder under that name, or nothing is learned",
                store.shown,
            )

    def release(self, query: str) -> None:
        """A query is over: if it was this one, its control path is free."""
        if self._store is not None:
            self._store.release(query)


class _Listener(StreamingQueryListener):
    """One for each session, which tells each loop of its own query.

    Spark calls it some time after a micro-batch is done; the next one may have begun.
    """

    def __init__(self) -> None:
        self.loops: dict[str, ControlLoop] = {}
        self._runs: dict[str, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        self._runs[str(event.id)] = str(event.runId)

    def onQueryIdle(self, event: object) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        for name in event.progress.observedMetrics:
            loop = self.loops.get(name)
            if loop is not None:
                try:
                    loop.hear(event.progress)
                except Exception:  # noqa: BLE001  # Spark would drop it without a word
                    batch = event.progress.batchId
                    _log.exception("the control loop could not use micro-batch %s", batch)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        # The end of a run may be told when the next one has begun, which has the same id.
        if self._runs.get(str(event.id)) in (None, str(event.runId)):
            for loop in list(self.loops.values()):
                loop.release(str(event.id))


_listeners: "WeakKeyDictionary[SparkSession, _Listener]" = WeakKeyDictionary()


def listen(session: SparkSession, loop: ControlLoop) -> None:
    """Let a loop hear of its query, as long as the session lasts."""
    if session not in _listeners:
        _listeners[session] = _Listener()
        session.streams.addListener(_listeners[session])
    _listeners[session].loops[loop.sources] = loop
