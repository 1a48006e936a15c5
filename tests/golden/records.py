"""Create the recorded outputs: on-disk formats, hashes, plans, routes and simulations.

`python -m tests.golden.records` writes the files beside this module. Write them again only for a
deliberate change of a format or a number, and describe the change in CHANGELOG.md: other drivers,
executors and checkpoints still use the old ones.
"""

import json
import tempfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

import steelyard as sy
from steelyard import schemes
from steelyard.control.controller import Controller
from steelyard.control.definition import Definition
from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.control.store import ControlStore
from steelyard.datasets import ArrayStream, named
from steelyard.delegation import PaperRules
from steelyard.simulator import (
    Cluster,
    ConsistentGrouping,
    Direct,
    Plans,
    SimulationSettings,
    simulate,
)

HERE = Path(__file__).parent


def counts(buckets, seed=0):
    """Return message counts by bucket, with a few hot buckets."""
    weights = 1.0 / np.arange(1, buckets + 1)
    random = np.random.default_rng(seed)
    return random.permutation(np.rint(1e6 * weights / weights.sum()))


def keys(messages=50_000, distinct=5_000):
    """Draw keys from a Zipf distribution."""
    weights = 1.0 / np.arange(1, distinct + 1)
    return np.random.default_rng(1).choice(distinct, messages, p=weights / weights.sum())


def plans():
    """Return plans for counts, for unequal workers, and for changed counts."""
    planner = sy.Planner(workers := 24, buckets=512, decay=0.5)
    unequal = sy.Planner(4, 0.1, 64, [4, 2, 1, 1], decay=0.5)
    first = planner.update(counts(512)).to_json()
    return {
        f"{workers} workers": json.loads(first),
        "other hot buckets": json.loads(planner.update(counts(512, seed=3)).to_json()),
        "unequal workers": json.loads(unequal.update(counts(64)).to_json()),
    }


def hashes():
    """Return the hashes of keys of every type."""
    some = [("",), ("steelyard",), ("ключ",), ("k" * 100,), (0,), (-1,), (2**40,), (1.5,)]
    some += [(True,), (None,), (b"\x00\xff",), ("a", 7)]
    return {repr(key): str(sy.hash_key(*key)) for key in some}


def routes():
    """Return a digest of the routes of the same messages for every scheme."""
    hashed = sy.hash_keys(keys())
    digests = {}
    for name in schemes.names():
        for bins in (7, 100):
            chosen = schemes.named(name).router(bins).route_many(hashed)
            digests[f"{name} over {bins}"] = digest(chosen)
    return digests


def simulations():
    """Return the results of every kind of grouping on unequal workers."""
    cluster = Cluster.machines(6, fast=2, times=3, total=125)
    groupings = {
        "key grouping": Direct(schemes.named("kg")),
        "shuffle grouping": Direct(schemes.named("sg")),
        "plans": Direct(Plans(decay=0.5)),
        "consistent grouping": ConsistentGrouping(virtual_workers=20),
        "consistent grouping by plans": ConsistentGrouping(Plans(decay=0.5), virtual_workers=20),
        "the paper's rules": ConsistentGrouping(virtual_workers=20, rules=PaperRules()),
    }
    stream = ArrayStream.at_rate(keys(), rate=100)
    found = {}
    for name, grouping in groupings.items():
        outcome = simulate(
            stream, cluster, grouping, SimulationSettings(sources=2, slot=10, tick=10, seed=4)
        )
        found[name] = {
            "loads": outcome.loads.tolist(),
            "moves": [int(outcome.moves.sum()), digest(outcome.moves)],
            "queue lengths": digest(outcome.queue_length),
            "mean latency": round(outcome.mean_latency, 9),
        }
    return found


def streams():
    """Return digests of the generated data sets."""
    found = {}
    for name in ("zf", "wp", "tw"):
        chunk = named(name).part(0, 10_000)
        found[name] = [digest(chunk.keys), digest(np.round(chunk.times, 6))]
    return found


def control_path():
    """Return all files of a control path after three micro-batches of delegated workers."""
    with tempfile.TemporaryDirectory() as folder:
        store = ControlStore(folder)
        store.prepare()
        controller = Controller(2, 5, delegation=True, store=store, buckets=64, decay=0.5)
        for batch in range(3):
            number = controller.version.number
            sent = SourceReport(batch, 0, 0, counts(64).astype(np.float32), (("hot", 9),), number)
            done = [
                WorkerReport(batch, 0, 600, 0.6, 40, ((80, 600),), 4096, 10.0, 10.6),
                WorkerReport(batch, 1, 600, 2.4, 50, ((90, 600),), 4096, 10.0, 12.4),
            ]
            controller.finish_batch(batch, 3.0, [sent], done, now=1000.0 + batch)
        store.drain([1])
        store.require_same("query", 0, Definition(("Count()",), ("page string",), placement="pull"))
        paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        texts = {str(path.relative_to(folder)): path.read_text() for path in paths}
    del texts["identity"]  # a random text
    return texts | {"source report": sent.to_json(), "worker report": done[0].to_json()}


def partial_states():
    """Return the partial states of aggregators, as a delegated worker keeps them."""
    rows = pa.table({"page": ["a", "b", "a"], "ms": [3, 5, 8]})
    aggregators = [sy.Count(), sy.Sum("ms"), sy.Mean("ms"), sy.Max("ms"), sy.TopK("ms", 2)]
    aggregation = sy.Aggregation(aggregators, ["page"], rows.schema)
    partial = aggregation.add(aggregation.create(), rows)
    return {
        "columns": {field.name: str(field.type) for field in aggregation.partial_schema},
        "rows": json.loads(json.dumps(partial.to_pylist(), default=str)),
        "results": json.loads(json.dumps(aggregation.result(partial).to_pylist(), default=str)),
    }


def digest(array):
    """Return a short text that depends on every number of an array."""
    return sha256(np.ascontiguousarray(array).astype("<f8").tobytes()).hexdigest()[:16]


RECORDS = {
    f.__name__: f
    for f in (plans, hashes, routes, simulations, streams, control_path, partial_states)
}


def text_of(name):
    """Return a record as the text of its file."""
    return json.dumps(RECORDS[name](), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in RECORDS:
        (HERE / f"{name}.json").write_text(text_of(name))
