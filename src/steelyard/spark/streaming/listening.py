"""Hand the reports in the progress events of Spark to the control loop."""

import logging
import time
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary, ref

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from steelyard.control.controller import Controller
from steelyard.control.definition import Definition
from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.control.store import ControlStore
from steelyard.control.version import ControlVersion
from steelyard.spark.streaming.state_schema import explanation_of

_log = logging.getLogger("steelyard")

_waiting_log = logging.getLogger("steelyard.waiting")
"""A logger of its own, because `steelyard stream` prints the number itself."""


class ControlLoop:
    """The link from the observed metrics of one query to its controller.

    A controller is large, and a session may run many queries. The loop therefore holds its
    controller only while the query runs. Before and after, the controller lives only as long as
    the user keeps the grouping.

    Args:
        name: Prefix of the names of the observed metrics.
        controller: The controller of the query; only a weak reference is kept.
        make: Returns a controller that resumes from the control path, if the first one is gone
            when the query starts again.
        definition: The definition of the query.
    """

    def __init__(
        self,
        name: str,
        controller: Controller,
        make: Callable[[], Controller],
        definition: Definition = Definition(),  # noqa: B008  # frozen
    ) -> None:
        self.sources, self.workers = f"{name}_sources", f"{name}_workers"
        self._known, self._make = ref(controller), make
        self._held: Controller | None = None
        self._store = controller.store
        self._definition = definition
        self.query = self._run = ""
        self._has_warned = False

    def finish_batch(self, progress: StreamingQueryProgress) -> None:
        """Use the reports of a finished micro-batch."""
        controller = self._controller_of(str(progress.id), str(progress.runId))
        sources, workers = self._reports(progress)
        self._check(sources, controller.version)
        seconds = progress.batchDuration / 1000
        controller.finish_batch(progress.batchId, seconds, sources, workers, time.time())

    def _reports(
        self, progress: StreamingQueryProgress
    ) -> tuple[list[SourceReport], list[WorkerReport]]:
        """Return the reports of a micro-batch, which the tasks wrote as JSON."""
        observed = progress.observedMetrics
        sources = [SourceReport.from_json(r) for r in observed[self.sources]["reports"] or []]
        workers = [WorkerReport.from_json(r) for r in observed[self.workers]["reports"] or []]
        return sources, workers

    def _controller_of(self, query: str, run: str) -> Controller:
        if self._held is None:
            self._held = self._known() or self._make()
            self._known = ref(self._held)
        if run != self._run:
            self._held.begin_run()
            self.query, self._run, self._has_warned = query, run, False
        return self._held

    def _check(self, sources: Sequence[SourceReport], known: ControlVersion | None) -> None:
        """Warn if sources do not see the versions that the driver has written."""
        followed = {report.version for report in sources if report.batch > 0}
        if self._store is not None and 0 in followed and known is not None and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "control: sources do not see the versions that the driver writes to %s, so plans "
                "and moves have no effect; all executors must share that folder",
                self._store.shown,
            )

    def end_run(
        self, query: str, *, has_failed: bool = False, is_unexplained: bool = False
    ) -> None:
        """Free the control path of a finished query, and release its controller.

        If the end is an unexplained failure, log whether the definition of the query has changed.
        If it is no failure, log how many partial results wait with the workers.
        """
        if self._store is not None:
            if is_unexplained:
                self._explain_failure(self._store, query)
            self._store.release(query)
        if query == self.query and self._held is not None:
            if not has_failed and self._held.waiting:
                _waiting_log.warning(
                    "%s partial results wait with the delegated workers, in the checkpoint: they "
                    "leave when a later run of the query ends their period; for a run that ends, "
                    "such as one with availableNow, use sy.Delegated(period=1)",
                    f"{self._held.waiting:,}",
                )
            self._held = None

    def _explain_failure(self, store: ControlStore, query: str) -> None:
        """Log an error if the query had another definition before; Spark may not show that."""
        try:
            store.require_same_as_before(query, self._definition)
        except ValueError as error:
            _log.error("%s", error)  # the query has failed already, so nothing is raised


class _Listener(StreamingQueryListener):
    """The listener of a session, which hands progress to the loop of each query.

    Spark calls it some time after a micro-batch; the next one may have begun.
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
                    loop.finish_batch(event.progress)
                except Exception:  # noqa: BLE001  # Spark would drop it without a message
                    batch = event.progress.batchId
                    _log.exception("the control loop could not use micro-batch %s", batch)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        query = str(event.id)
        # Spark may report the end of a run after the next run, with the same id, has begun.
        if self._runs.get(query) not in (None, str(event.runId)):
            return
        self._runs.pop(query, None)
        failure = event.exception or ""
        explanation = explanation_of(failure)
        if explanation is not None:
            _log.error("%s", explanation)
        is_unexplained = bool(failure) and explanation is None
        for loop in self._loops_of(query):
            try:
                loop.end_run(query, has_failed=bool(failure), is_unexplained=is_unexplained)
            except Exception:  # noqa: BLE001  # as above; the other loops must still end
                _log.exception("the control path of query %s could not be freed", query)

    def _loops_of(self, query: str) -> list[ControlLoop]:
        """Return the loops of a query and those without a report; all if no loop has the query."""
        loops = list(self.loops.values())
        if not any(loop.query == query for loop in loops):
            return loops
        return [loop for loop in loops if loop.query in ("", query)]


_listeners: "WeakKeyDictionary[SparkSession, _Listener]" = WeakKeyDictionary()


def listen(session: SparkSession, loop: ControlLoop) -> None:
    """Hand a loop the progress of its query for the rest of the session."""
    if session not in _listeners:
        _listeners[session] = _Listener()
        session.streams.addListener(_listeners[session])
    _listeners[session].loops[loop.sources] = loop


def stop_listening(session: SparkSession) -> None:
    """Remove the listener of a session that is about to stop.

    On Spark Connect a thread of the listener waits for events, and would fail when the connection
    is closed.
    """
    listener = _listeners.pop(session, None)
    if listener is not None:
        session.streams.removeListener(listener)
