"""The part of a grouped stream that does not depend on the work: its control loop and history.

A controller enters; a link from the reports of the query to this controller leaves.
"""

import os
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from steelyard.control.controller import Controller
from steelyard.control.definition import Definition
from steelyard.control.history import History
from steelyard.control.store import ControlStore
from steelyard.spark.columns import require_frame
from steelyard.spark.streaming.checkpoints import require_same_definition
from steelyard.spark.streaming.listening import ControlLoop, listen

if TYPE_CHECKING:
    from steelyard.control.prometheus import MetricsServer


class ControlledStream:
    """A stream with a control loop, for one result.

    Args:
        make_controller: Returns a controller, which resumes from the control path if there is one.
    """

    def __init__(self, make_controller: Callable[[], Controller]) -> None:
        self.controller = make_controller()
        self._make_controller = make_controller
        self._name = f"steelyard_{uuid.uuid4().hex}"
        self._session: SparkSession | None = None
        self._definition = Definition()

    @property
    def control(self) -> ControlStore | None:
        """The control path, if there is one."""
        return self.controller.store

    def history(self) -> History:
        """Return the slots so far: shares, states and latencies of workers, moves, hot keys.

        The result is a list of slots, which a terminal or a notebook shows as a table.
        """
        return History(self.controller.history)

    def waiting(self) -> int:
        """Return the number of partial results that wait with delegated workers.

        These are results of keys, or of keys in windows, since the last finished micro-batch that
        Spark has reported. They are in the checkpoint. They leave at the end of their period, with
        a later micro-batch, which needs new messages.
        """
        return self.controller.waiting

    def await_reports(self, query: StreamingQuery, seconds: float = 60.0) -> None:
        """Wait until the history includes all finished micro-batches of a query.

        Spark calls listeners some time after a micro-batch. After `seconds` this returns even if
        the history is not complete.
        """
        done = [p for p in query.recentProgress if f"{self._name}_workers" in p.observedMetrics]
        end = time.monotonic() + seconds
        while done and self.controller.last_batch < done[-1].batchId and time.monotonic() < end:
            time.sleep(0.02)

    def serve_metrics(
        self, port: int, address: str = "127.0.0.1", names: Sequence[str] = ()
    ) -> "MetricsServer":
        """Serve the newest slot to Prometheus at /metrics, until the server is closed.

        The server accepts requests for its address and for `names`, and refuses all others. With an
        `address` other than the default it also accepts the name of the machine. It needs
        `prometheus-client`, which the extra `metrics` installs.

        Args:
            port: The port to listen on.
            address: The address to listen on.
            names: Further host names that Prometheus may use in its requests.

        Returns:
            The running server.

        Raises:
            ImportError: `prometheus-client` is not installed.
        """
        try:
            from steelyard.control.prometheus import MetricsServer
        except ModuleNotFoundError as error:
            raise ImportError(
                "metrics need prometheus-client: install Steelyard with its extra 'metrics'"
            ) from error
        return MetricsServer(self.history, port, address, names)

    def write_stream(
        self, results: DataFrame, checkpoint: str | os.PathLike[str]
    ) -> DataStreamWriter:
        """Return Spark's writer of the results, with a checkpoint that belongs to this query.

        It is `results.writeStream.option("checkpointLocation", checkpoint)`, and raises an error
        before the query starts if the checkpoint is of a query with another key, aggregators,
        window or placement. `results` may also be a frame that is made from the result of this
        grouping.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: The checkpoint is of a query with another definition, or this grouping has
                no result yet.
        """
        require_frame("results", results)
        if not isinstance(checkpoint, str | os.PathLike):
            raise TypeError(f"checkpoint must be a path or an address, got {checkpoint!r}")
        if self._session is None:
            raise ValueError(
                "write_stream writes the result of this grouping: call aggregate or map_arrow first"
            )
        folder = os.fspath(checkpoint)
        require_same_definition(self._session, folder, self._definition)
        return results.writeStream.option("checkpointLocation", folder)

    def _begin(self, session: SparkSession, loop: ControlLoop, definition: Definition) -> None:
        """Begin the only result of this grouping, and listen for its reports."""
        if self._session is not None:
            raise ValueError(
                "a grouping of a stream is for one result; call group_stream again for another "
                "result, with a control path of its own"
            )
        self._session, self._definition = session, definition
        listen(session, loop)
