"""Score clicks with the profile of their user, where one user has a third of all clicks.

python examples/scoring.py

Loading a profile takes 10 ms and scoring a click 0.1 ms. Both sleep, so that two cores can emulate
eight task slots.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from steelyard.apps.scoring import key_by_key, score_by_key
from steelyard.datasets import zipf_ranks
from steelyard.spark.session import session

SCHEMA = "user string, clicks long, loads long"


def load(user):
    """Return a profile, as from a slow service."""
    time.sleep(0.01)
    return {"user": user, "is_new": True}


def score(profile, clicks):
    """Return the number of clicks, and 1 if the profile was loaded for this call, else 0."""
    end = time.perf_counter() + clicks.num_rows * 1e-4
    while (left := end - time.perf_counter()) > 0:
        time.sleep(min(left, 0.005))
    loads, profile["is_new"] = int(profile["is_new"]), False
    return pa.table({"user": [profile["user"]], "clicks": [clicks.num_rows], "loads": [loads]})


def in_arrow(batches):
    """Score the clicks of `mapInArrow`."""
    scored = key_by_key("user", load, score)
    for batch in batches:
        yield from scored(pa.Table.from_batches([batch])).to_batches()


def grouped(key, clicks):
    """Score the clicks of `groupBy(...).applyInArrow`."""
    return score(load(key[0].as_py()), clicks)


def main(spark, folder, clicks=400_000, users=1000, slots=8):
    """Print the time and the loads of Spark's own methods and of `score_by_key`."""
    names = np.char.add("user", zipf_ranks(clicks, 1.4, users).astype(str))
    each = -(-clicks // 4)
    for part in range(4):
        own = names[part * each : (part + 1) * each]
        made = pa.table({"user": own, "page": np.arange(own.size)})
        pq.write_table(made, folder / f"{part}.parquet")
    frame = spark.read.parquet(str(folder))
    ours = {"load": load, "score": score, "schema": SCHEMA, "workers": slots}
    methods = {
        "groupBy(user).applyInArrow": lambda rows: rows.groupBy("user").applyInArrow(
            grouped, SCHEMA
        ),
        f"repartition({slots}, user).mapInArrow": lambda rows: rows.repartition(
            slots, "user"
        ).mapInArrow(in_arrow, SCHEMA),
        f"repartition({slots}).mapInArrow": lambda rows: rows.repartition(slots).mapInArrow(
            in_arrow, SCHEMA
        ),
        "score_by_key": lambda rows: score_by_key(rows, "user", **ours),
    }
    some = frame.where("page < 10")
    for method in methods.values():  # starts Spark's Python workers
        method(some).count()
    print(f"{'':<32} {'seconds':>8} {'profiles loaded':>16} {'clicks':>9}")
    for name, method in methods.items():
        begin = time.perf_counter()
        loads, scored = method(frame).agg(F.sum("loads"), F.sum("clicks")).first()
        seconds = time.perf_counter() - begin
        print(f"{name:<32} {seconds:>8.1f} {loads:>16,} {scored:>9,}")


if __name__ == "__main__":
    more = {"spark.sql.shuffle.partitions": "8"}
    with tempfile.TemporaryDirectory() as folder, session("scoring", "local[8]", more) as spark:
        main(spark, Path(folder))
