"""What can be said of grouped rows, whether they end or go on."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from steelyard.aggregators import Aggregator
from steelyard.control.history import Slot
from steelyard.executor.worker import Function

if TYPE_CHECKING:
    from steelyard.control.prometheus import MetricsServer


class Grouped(ABC):
    """Rows that will go to workers by their keys; say with it what the workers do."""

    @abstractmethod
    def map_arrow(self, function: Function, schema: StructType | str) -> DataFrame:
        """Run a function on the rows of each worker; its tables together are the result."""

    @abstractmethod
    def aggregate(self, *aggregators: Aggregator) -> DataFrame:
        """The results of these aggregators for every key: the key columns, then one column each."""

    @property
    def hot_keys(self) -> list[Row]:
        """The keys that are split, with `whole_light_keys`: those too large for one task."""
        raise ValueError("hot keys are listed with whole_light_keys=True")

    def history(self) -> list[Slot]:
        """What happened in a stream, slot by slot."""
        raise ValueError("only a stream has a history")

    def await_reports(self, query: StreamingQuery, seconds: float = 60.0) -> None:
        """Wait until the history of a stream knows of all that its query has done."""
        raise ValueError("only a stream has a history")

    def serve_metrics(
        self, port: int, address: str = "127.0.0.1", names: Sequence[str] = ()
    ) -> "MetricsServer":
        """Tell Prometheus of a stream."""
        raise ValueError("only a stream has metrics")
