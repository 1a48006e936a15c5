"""Workers that stay where their state is: Spark's side of them.

A worker, as a function of what it kept, enters; a stateful processor leaves. Each group of rows has
one value of state: a round trip to Spark's state store for every worker, not for every key. Rows
leave through pandas in Arrow's own types, which change nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from steelyard.spark.shipping import by_value

if TYPE_CHECKING:
    import pandas as pd

Worker = Callable[[bytes | None, Iterable[pa.RecordBatch], int, int], Any]


def stateful(worker: Worker) -> StatefulProcessor:
    """For `groupBy(...).transformWithStateInPandas`: the rows have a bin and a block."""
    fetch = by_value(worker)

    # A class within a function has no name to be found by: it travels by value.
    class Processor(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            from pyspark.sql.types import BinaryType, StructField, StructType

            one_value = StructType([StructField("value", BinaryType())])
            self.kept = handle.getValueState("kept", one_value)

        def handleInputRows(  # noqa: N802  # Spark's name
            self,
            key: Any,
            rows: Iterator["pd.DataFrame"],
            timerValues: Any,  # noqa: N803
        ) -> Iterator["pd.DataFrame"]:
            import pandas as pd
            import pyarrow as pa
            from pyspark import TaskContext

            bins: list[int] = []

            def batches() -> Iterator[pa.RecordBatch]:
                for frame in rows:
                    bins.extend(frame["bin"].tolist())
                    columns = {"block": pa.array(frame["block"], pa.binary())}
                    if "latest" in frame:
                        columns["latest"] = pa.array(frame["latest"], from_pandas=True)
                    yield pa.record_batch(columns)

            blocks = list(batches())
            context = TaskContext.get()
            assert context is not None
            batch = context.getLocalProperty("streaming.sql.batchId")
            assert batch is not None
            before = self.kept.get() if self.kept.exists() else None
            after, made = fetch()(before and bytes(before[0]), blocks, bins[0], int(batch))
            if after is not None:
                self.kept.update((after,))
            elif before is not None:
                self.kept.clear()
            for part in made:
                yield part.to_pandas(types_mapper=pd.ArrowDtype)
            from steelyard.spark.quick_tasks import prepare_for_more

            prepare_for_more()

        def close(self) -> None:
            pass

    return Processor()
