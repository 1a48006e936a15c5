"""Learn to classify texts from a stream, with delegated workers, and print the accuracy.

python examples/naive_bayes.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.apps.naive_bayes import NaiveBayes
from steelyard.datasets import zipf_ranks
from steelyard.spark.session import STATE_IN_ROCKSDB, session

CLASSES, WORDS, LENGTH = 4, 2000, 20


def texts(number, seed):
    """Return texts of Zipf-distributed words.

    The fifty most frequent words are the same in every class; each class has its own order of the
    others.
    """
    rng = np.random.default_rng(seed)
    mixed = np.random.default_rng(0)
    orders = [np.append(np.arange(50), 50 + mixed.permutation(WORDS - 50)) for _ in range(CLASSES)]
    classes = rng.integers(0, CLASSES, number)
    ranks = zipf_ranks(number * LENGTH, 1.0, WORDS, seed).reshape(number, LENGTH)
    words = [[f"word{n}" for n in orders[c][own]] for c, own in zip(classes, ranks, strict=True)]
    return pa.table({"class": [f"class {c}" for c in classes], "words": words})


def main(spark, folder, batches=8, each=100):
    """Learn from one micro-batch for each file; results come after every second micro-batch."""
    (folder / "texts").mkdir()
    for batch in range(batches):
        pq.write_table(texts(each, batch), folder / "texts" / f"{batch:03}.parquet")
    pq.write_table(texts(500, 1000), folder / "tested.parquet")
    tested = spark.read.parquet(str(folder / "tested.parquet")).cache()

    bayes = NaiveBayes(label="class", features=["words"])
    stream = (
        spark.readStream.schema(tested.schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "texts"))
    )
    counts = bayes.counts(
        stream, workers=4, placement=sy.Delegated(period=2), control=folder / "control"
    )
    print(f"{'micro-batch':>11} {'texts':>7} {'counters':>9} {'accuracy':>9}")
    printed = set()

    def learn(batch, number):
        if batch.isEmpty():
            return
        model = bayes.model(batch)
        model.save(folder / "model.parquet")
        rows = batch.where("feature IS NULL").agg(F.sum("count")).first()[0]
        if rows not in printed:
            printed.add(rows)
            accuracy = model.predict(tested).where("class = prediction").count() / tested.count()
            print(f"{number:>11} {rows:>7,} {model.counts.num_rows:>9,} {accuracy:>9.1%}")

    query = (
        counts.writeStream.outputMode("complete")
        .foreachBatch(learn)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    settings = {**STATE_IN_ROCKSDB, "spark.sql.shuffle.partitions": "4"}
    with (
        tempfile.TemporaryDirectory() as folder,
        session("naive Bayes", "local[2]", settings) as spark,
    ):
        main(spark, Path(folder))
