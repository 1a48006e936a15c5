"""The blocks that leave workers."""

import numpy as np
import pyarrow as pa

import steelyard as sy
from steelyard.aggregators import Aggregation
from steelyard.executor import packing, worker_output
from steelyard.executor.merging_worker import Merging
from steelyard.executor.stateful_worker import DelegatedMap
from steelyard.executor.worker import Map
from tests.executor.micro_batches import ROWS, SUMS, WATCH, blocks


def test_large_results_leave_in_several_blocks(monkeypatch):
    """Spark holds a whole block in memory, so blocks have a limit."""
    monkeypatch.setattr(worker_output, "_SENT_BYTES", 10_000)
    aggregation = Aggregation([sy.CollectSet("id")], ["page"], ROWS)
    rows = pa.table({"page": [f"{i:0100}" for i in range(500)], "id": range(500)}, ROWS)
    block = aggregation.add(aggregation.create(), rows).to_batches()[0]
    sent = [packing.packed(block, np.zeros(500, np.int32))]
    _, made = Merging(aggregation, (), SUMS)(None, sent, 0, 0)
    blocks_made = [b for part in made for b in part.column("block").to_pylist()]
    assert max(map(len, blocks_made)) < 12_000
    function = DelegatedMap(Map(lambda table: table.select(["page", "id"]), ROWS), WATCH)
    _, made = function(None, blocks(*rows["page"].to_pylist()), 0, 0)
    found = [b for part in made for b in part.column("block").drop_null().to_pylist()]
    assert max(map(len, found)) < 12_000
    assert rows["page"].to_pylist() == [
        page for b in found for page in pa.ipc.open_stream(b).read_all()["c0"].to_pylist()
    ]
