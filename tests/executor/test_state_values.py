"""The values of Spark's state from which a worker continues, and those that it refuses."""

import numpy as np
import pyarrow as pa
import pytest

import steelyard as sy
from steelyard.aggregators import Aggregation
from steelyard.control.definition import Definition
from steelyard.executor import packing
from steelyard.executor.merging_worker import Merging
from steelyard.executor.period import Period
from steelyard.executor.stateful_worker import DelegatedMap
from steelyard.executor.worker import Map
from tests.executor.micro_batches import ROWS, SUMS, WATCH, blocks, counts, periodic


def older(kept, *names):
    """Return a value as versions without definitions wrote it, with these settings only."""
    table = pa.ipc.open_stream(kept).read_all()
    metadata = {name: table.schema.metadata[name] for name in names}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata(metadata)) as stream:
        stream.write_table(table.replace_schema_metadata(metadata))
    return bytes(sink.getvalue())


def test_state_of_another_definition_is_refused():
    """Workers and shards name the old and the new aggregators in their error."""
    most = Definition(keys=("page string",), aggregators=("Max(column='id')",))
    sentence = r"with the aggregators Sum\(column='id'\), and this query has Max\(column='id'\):"
    kept, _ = periodic(Period(batches=4), sy.Sum("id"))(None, blocks("a"), 0, 0)
    with pytest.raises(ValueError, match=sentence):
        periodic(Period(batches=4), sy.Max("id"), most)(kept, blocks("b"), 0, 1)
    shards = Aggregation([sy.Sum("id")], ["page"], ROWS)
    states = shards.add(shards.create(), pa.table({"page": ["a"], "id": [1]}, ROWS))
    block = [packing.packed(states.to_batches()[0], np.zeros(1, np.int32))]
    merged, _ = Merging(shards, (), SUMS)(None, block, 0, 0)
    with pytest.raises(ValueError, match=sentence):
        Merging(Aggregation([sy.Max("id")], ["page"], ROWS), (), most)(merged, block, 0, 1)
    function = DelegatedMap(Map(lambda rows: rows, ROWS), WATCH)
    with pytest.raises(ValueError, match="with aggregators, and map_arrow keeps no state"):
        function(merged, blocks("a"), 0, 1)


def test_a_shard_without_keys_stores_the_definition():
    """It then refuses the first states of a query with another definition."""
    most = Definition(keys=("page string",), aggregators=("Max(column='id')",))
    aggregation = Aggregation([sy.Sum("id")], ["page"], ROWS)
    kept, made = Merging(aggregation, (), SUMS)(None, blocks(), 0, 0)
    assert [] == made
    assert kept == Merging(aggregation, (), SUMS)(kept, blocks(), 0, 1).kept
    with pytest.raises(ValueError, match="and this query has Max"):
        Merging(aggregation, (), most)(kept, blocks(), 0, 1)


def test_state_without_a_definition_is_accepted_if_its_columns_are_the_same():
    """Older versions wrote no definitions; if the columns differ, the error names them."""
    kept, _ = periodic(Period(batches=4), sy.Sum("id"))(None, blocks("a", "b"), 0, 0)
    kept = older(kept, b"period", b"workers")
    with pytest.raises(ValueError, match=r"the state page string, sum\(id\).sum int64, and this"):
        periodic(Period(batches=4), sy.Max("id"))(kept, blocks("a"), 0, 1)
    kept, _ = periodic(Period(batches=4), sy.Sum("id"))(kept, blocks("c", "b"), 0, 1)
    assert {"a": 0, "b": 2, "c": 0} == counts(
        periodic(Period(batches=4), sy.Sum("id"))(kept, blocks(), 0, 4)[1]
    )
