"""Run stateful workers in Spark, on the executors that hold their state.

A worker, as a function of its state, enters; a stateful processor leaves. Each group of rows has
one value of state, so Spark's state store is called once for each worker, not once for each key. A
large value is stored in pieces, after a short value with their number: if several copies of it do
not fit into the memory of the JVM, Spark's thread for the state dies and the query waits for it
forever. Rows leave through pandas in Arrow's types, so that no value changes.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from steelyard.executor.stateful_worker import StatefulWorker
from steelyard.spark.executor_packages import STATEFUL
from steelyard.spark.shipping import by_value
from steelyard.spark.versions.interfaces import StatefulProcessor

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle


VARIABLE = "kept"
"""The name of the state variable; checkpoints depend on it: never change it."""


def stateful(worker: StatefulWorker) -> StatefulProcessor:
    """Return a processor for `groupBy(...).transformWithStateInPandas` on bins and blocks."""
    fetch, variable = by_value(worker, STATEFUL), VARIABLE

    # Python cannot import a class inside a function, so Spark pickles it by value.
    class Processor(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: "StatefulProcessorHandle") -> None:
            from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

            one_value = StructType([StructField("value", BinaryType())])
            number = StructType([StructField("number", IntegerType())])
            # One state variable, because each of them costs every task a round trip to the JVM.
            self.kept: Any = handle.getMapState(variable, number, one_value)

        def handleInputRows(  # noqa: N802  # Spark's name
            self,
            key: Any,
            rows: Iterator["pd.DataFrame"],
            timerValues: Any,  # noqa: N803
        ) -> Iterator["pd.DataFrame"]:
            import pandas as pd
            import pyarrow as pa

            bins: list[int] = []

            def batches() -> Iterator[pa.RecordBatch]:
                for frame in rows:
                    bins.extend(frame["bin"].tolist())
                    columns = {"block": pa.array(frame["block"], pa.binary())}
                    if "latest" in frame:
                        columns["latest"] = pa.array(frame["latest"], from_pandas=True)
                    yield pa.record_batch(columns)

            blocks = list(batches())
            work = fetch()  # from here on the modules of this package can be imported
            from steelyard.executor.task_context import micro_batch

            before, count = self.read()
            result = work(before, blocks, bins[0], micro_batch().batch)
            if result.kept != before:
                self.write(result.kept, count)
            for part in result.rows:
                yield part.to_pandas(types_mapper=pd.ArrowDtype)
            from steelyard.executor.quick_tasks import prepare_for_more

            prepare_for_more()

        def read(self) -> tuple[bytes | None, int]:
            """Return the value, and the number of its pieces."""
            from steelyard.executor.state_values import pieces_of

            if not self.kept.containsKey((0,)):
                return None, 0
            first = bytes(self.kept.getValue((0,))[0])
            count = pieces_of(first)
            pieces = (bytes(self.kept.getValue((i + 1,))[0]) for i in range(count))
            return b"".join(pieces) if count else first, count

        def write(self, value: bytes | None, count: int) -> None:
            """Replace a value that has `count` pieces."""
            from steelyard.executor.state_values import cut

            first, pieces = cut(value) if value is not None else (None, [])
            for number, piece in enumerate(pieces):
                self.kept.updateValue((number + 1,), (piece,))
            for number in range(len(pieces), count):
                self.kept.removeKey((number + 1,))
            if first is None:
                self.kept.removeKey((0,))
            else:
                self.kept.updateValue((0,), (first,))

        def close(self) -> None:
            pass

    return Processor()
