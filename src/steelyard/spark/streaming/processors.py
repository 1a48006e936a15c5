"""Workers that stay where their state is: Spark's side of them.

A worker, as a function of what it kept, enters; a stateful processor leaves. Each group of rows has
one value of state: a round trip to Spark's state store for every worker, not for every key. A large
value is kept in pieces: Spark's thread for the state dies of a value that does not fit into the
memory of the JVM several times, and the query would wait for it. Rows leave through pandas in
Arrow's own types, which change nothing.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from steelyard.executor.stateful_worker import StatefulWorker
from steelyard.spark.shipping import by_value

if TYPE_CHECKING:
    import pandas as pd


def stateful(worker: StatefulWorker) -> StatefulProcessor:
    """For `groupBy(...).transformWithStateInPandas`: the rows have a bin and a block."""
    fetch = by_value(worker)

    # A class within a function has no name to be found by: it travels by value.
    class Processor(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

            one_value = StructType([StructField("value", BinaryType())])
            number = StructType([StructField("number", IntegerType())])
            self.kept: Any = handle.getValueState("kept", one_value)
            self.pieces: Any = handle.getMapState("pieces", number, one_value)

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
            work = fetch()  # from here on the modules of this package are there
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
            """The value, and the number of pieces in which it is kept."""
            from steelyard.executor.state_values import pieces_of

            if not self.kept.exists():
                return None, 0
            first = bytes(self.kept.get()[0])
            count = pieces_of(first)
            pieces = (bytes(self.pieces.getValue((i,))[0]) for i in range(count))
            return b"".join(pieces) if count else first, count

        def write(self, value: bytes | None, count: int) -> None:
            """Replace a value that has `count` pieces."""
            from steelyard.executor.state_values import cut

            first, pieces = cut(value) if value is not None else (None, [])
            for number, piece in enumerate(pieces):
                self.pieces.updateValue((number,), (piece,))
            for number in range(len(pieces), count):
                self.pieces.removeKey((number,))
            if first is None:
                self.kept.clear()
            else:
                self.kept.update((first,))

        def close(self) -> None:
            pass

    return Processor()
