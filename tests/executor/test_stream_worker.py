"""What workers make of blocks and of what they kept, without Spark."""

from collections import Counter
from math import inf

import numpy as np
import pyarrow as pa
import pytest

import steelyard as sy
from steelyard.aggregators import Aggregation
from steelyard.control.definition import Definition
from steelyard.executor import packing
from steelyard.executor import stream_worker as at_work
from steelyard.executor.stream_worker import Merging, Period, Periodic, Staying, Stopwatch
from steelyard.executor.worker import Map

ROWS = pa.schema([("page", pa.string()), ("id", pa.int64())])
WATCH = Stopwatch("bucket", None, ("page", "id"), ("page",), workers=1)
SUMS = Definition(keys=("page string",), aggregators=("Sum(column='id')",))
MINUTE, HOUR = 60_000_000, 3_600_000_000


def blocks(*pages, latest=None):
    """A micro-batch with a row of each page; without any, a worker is told of it all the same."""
    if not pages:
        times = pa.array([latest], pa.int64())
        return [pa.record_batch({"block": pa.nulls(1, pa.binary()), "latest": times})]
    rows = pa.record_batch(
        {
            "page": pa.array(pages, pa.string()),
            "id": pa.array(range(len(pages)), pa.int64()),
            "bucket": pa.array([hash(page) % 8 for page in pages], pa.int32()),
        }
    )
    sent = packing.packed(rows, np.zeros(len(pages), np.int32))
    return [sent.append_column("latest", pa.array([latest] * sent.num_rows, pa.int64()))]


def periodic(period, aggregator=None, definition=SUMS, most_held=inf):
    aggregation = Aggregation([aggregator or sy.Count()], ["page"], ROWS)
    return Periodic(aggregation, period, 1, None, WATCH, definition, most_held)


def counts(made):
    """By page what the states that were sent add up to."""
    total = Counter()
    for part in made:
        states = part.filter(part.column(at_work.REPORT).is_null())
        for page, count in zip(states["c0"].to_pylist(), states["c1"].to_pylist(), strict=True):
            total[page] += count
    return total


def test_a_worker_that_holds_too_much_does_not_wait_for_its_period():
    """New keys in every micro-batch: what it keeps is bounded, and nothing is lost."""
    worker = periodic(Period(batches=100), most_held=20_000)
    kept, sent, sizes, early = None, Counter(), [], 0
    for batch in range(30):
        pages = [f"{batch} {key} {'x' * 90}" for key in range(40)]
        kept, made = worker(kept, blocks(*pages), 0, batch)
        sent += counts(made)
        sizes.append(len(kept))
        early += bool(counts(made))
    assert 30 * 40 == len(sent) + len(counts(worker(kept, blocks(), 0, 100)[1]))
    assert {1} == set(sent.values())
    assert max(sizes) < 25_000
    assert 4 <= early <= 10, "not every micro-batch either"


def test_a_worker_sends_on_what_one_micro_batch_brings_too_much():
    """In a micro-batch of several tables too, and merged."""
    worker = periodic(Period(batches=100), most_held=20_000)
    batches = [block for key in range(4000) for block in blocks(f"{key % 1000} {'x' * 90}")]
    kept, made = worker(None, batches, 0, 0)
    assert len(kept) < 25_000
    rest = counts(worker(kept, blocks(), 0, 100)[1])
    assert {4} == set((counts(made) + rest).values())


def test_keys_that_come_again_are_held_however_many_rows_they_have():
    """The bound is of what is kept, not of what came."""
    worker = periodic(Period(batches=100), most_held=20_000)
    kept = None
    for batch in range(30):
        kept, made = worker(kept, blocks(*[f"{key} {'x' * 90}" for key in range(80)]), 0, batch)
        assert not counts(made)
    assert {30} == set(counts(worker(kept, blocks(), 0, 100)[1]).values())


@pytest.mark.parametrize(
    ("before", "after", "times"),
    [
        (Period(micros=MINUTE), Period(micros=HOUR), (90 * MINUTE, 91 * MINUTE)),
        (Period(micros=HOUR), Period(micros=MINUTE), (90 * MINUTE, 90 * MINUTE)),
        (Period(batches=4), Period(batches=6), (None, None)),
        (Period(batches=6), Period(batches=4), (None, None)),
        (Period(batches=4), Period(micros=HOUR), (None, 90 * MINUTE)),
        (Period(micros=MINUTE), Period(batches=4), (90 * MINUTE, None)),
    ],
)
def test_what_was_held_is_sent_when_the_period_has_another_length(before, after, times):
    """At once, and once; what comes then waits for the end of a new period."""
    kept, made = periodic(before)(None, blocks("a", "b", latest=times[0]), 0, 8)
    assert not counts(made)
    kept, made = periodic(after)(kept, blocks("a", latest=times[1]), 0, 9)
    assert {"a": 1, "b": 1} == counts(made)
    kept, made = periodic(after)(kept, blocks("c", latest=times[1]), 0, 10)
    assert not counts(made)
    later = None if times[1] is None else times[1] + 2 * HOUR
    _, made = periodic(after)(kept, blocks("d", latest=later), 0, 24)
    assert {"a": 1, "c": 1} == counts(made)


def test_a_worker_without_anything_to_hold_leaves_its_state_as_it_is():
    """With periods of one micro-batch nothing is written to it again."""
    worker = periodic(Period())
    kept, _ = worker(None, blocks("a"), 0, 0)
    assert kept == worker(kept, blocks("b"), 0, 1)[0]


def older(kept, *told):
    """The value as versions without definitions wrote it."""
    table = pa.ipc.open_stream(kept).read_all()
    metadata = {name: table.schema.metadata[name] for name in told}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata(metadata)) as stream:
        stream.write_table(table.replace_schema_metadata(metadata))
    return bytes(sink.getvalue())


def test_state_of_another_definition_is_refused():
    """In a sentence that tells what it was and what it is, by workers and where states meet."""
    most = Definition(keys=("page string",), aggregators=("Max(column='id')",))
    sentence = r"with the aggregators Sum\(column='id'\), and this query has Max\(column='id'\):"
    kept, _ = periodic(Period(batches=4), sy.Sum("id"))(None, blocks("a"), 0, 0)
    with pytest.raises(ValueError, match=sentence):
        periodic(Period(batches=4), sy.Max("id"), most)(kept, blocks("b"), 0, 1)
    shards = Aggregation([sy.Sum("id")], ["page"], ROWS)
    states = shards.add(shards.create(), pa.table({"page": ["a"], "id": [1]}, ROWS))
    block = [packing.packed(states.to_batches()[0], np.zeros(1, np.int32))]
    met, _ = Merging(shards, (), SUMS)(None, block, 0, 0)
    with pytest.raises(ValueError, match=sentence):
        Merging(Aggregation([sy.Max("id")], ["page"], ROWS), (), most)(met, block, 0, 1)
    function = Staying(Map(lambda rows: rows, ROWS), WATCH)
    with pytest.raises(ValueError, match="with aggregators, and map_arrow keeps no state"):
        function(met, blocks("a"), 0, 1)


def test_state_without_a_definition_is_accepted_if_its_columns_are_the_same():
    """An older version wrote it; else a sentence tells the columns."""
    kept, _ = periodic(Period(batches=4), sy.Sum("id"))(None, blocks("a", "b"), 0, 0)
    kept = older(kept, b"period", b"workers")
    with pytest.raises(ValueError, match=r"the state page string, sum\(id\).sum int64, and this"):
        periodic(Period(batches=4), sy.Max("id"))(kept, blocks("a"), 0, 1)
    kept, _ = periodic(Period(batches=4), sy.Sum("id"))(kept, blocks("c", "b"), 0, 1)
    assert {"a": 0, "b": 2, "c": 0} == counts(
        periodic(Period(batches=4), sy.Sum("id"))(kept, blocks(), 0, 4)[1]
    )


def test_a_function_that_fails_is_called_once():
    """The sentence tells worker, micro-batch, how much there was, and the first keys."""
    calls = []

    def fragile(rows):
        calls.append(rows.num_rows)
        raise KeyError("cannot read this")

    timed = WATCH.start(Map(fragile, ROWS).start(), 0, 7)
    (table,) = packing.unpacked(blocks(*"abcdefga"))
    buckets = len(set(table["bucket"].to_pylist()))
    sentence = (
        f"worker 0 failed in micro-batch 7 on 8 rows of {buckets} buckets and 7 keys "
        r"\(a; b; c; d; e; ...\): KeyError: 'cannot read this'"
    )
    with pytest.raises(RuntimeError, match=sentence):
        timed.work(table)
    assert [8] == calls


def test_large_results_leave_in_several_blocks(monkeypatch):
    """Spark holds a block in memory as a whole."""
    monkeypatch.setattr(at_work, "_SENT_BYTES", 10_000)
    aggregation = Aggregation([sy.CollectSet("id")], ["page"], ROWS)
    rows = pa.table({"page": [f"{i:0100}" for i in range(500)], "id": range(500)}, ROWS)
    block = aggregation.add(aggregation.create(), rows).to_batches()[0]
    sent = [packing.packed(block, np.zeros(500, np.int32))]
    _, made = Merging(aggregation, (), SUMS)(None, sent, 0, 0)
    blocks_made = [b for part in made for b in part.column("block").to_pylist()]
    assert max(map(len, blocks_made)) < 12_000
    function = Staying(Map(lambda table: table.select(["page", "id"]), ROWS), WATCH)
    _, made = function(None, blocks(*rows["page"].to_pylist()), 0, 0)
    found = [b for part in made for b in part.column("block").drop_null().to_pylist()]
    assert max(map(len, found)) < 12_000
    assert rows["page"].to_pylist() == [
        page for b in found for page in pa.ipc.open_stream(b).read_all()["c0"].to_pylist()
    ]
