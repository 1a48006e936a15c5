"""Write visits partitioned by country, where one country has half of them.

`partitioned` writes neither one giant file nor many small ones.

python examples/partitioned.py
"""

import tempfile
from pathlib import Path

from steelyard.apps.partitioned import partitioned
from steelyard.spark.session import session


def main(spark, folder, rows=400_000, rows_per_file=25_000, countries=40):
    """Print the number and the sizes of the files that Spark's own writers and ours produce."""
    visits = spark.range(0, rows, 1, 8).selectExpr(
        f"if(id % 2 = 0, 'de', concat('c', pmod(xxhash64(id), {countries}))) AS country",
        "id AS visit",
        "xxhash64(id) AS session",
    )
    tasks = rows // rows_per_file
    by_key = visits.repartition(tasks, "country")
    writers = {
        "write": visits.write.partitionBy("country"),
        f"repartition({tasks}, country).write": by_key.write.partitionBy("country"),
        f"repartition({tasks}).write": visits.repartition(tasks).write.partitionBy("country"),
        "partitioned": partitioned(visits, "country", rows_per_file=rows_per_file),
    }
    print(f"{'':<32} {'files':>6} {'mean kB':>8} {'largest kB':>11} {'largest / mean':>15}")
    for number, (name, writer) in enumerate(writers.items()):
        path = folder / str(number)
        writer.parquet(str(path))
        sizes = [file.stat().st_size / 1000 for file in path.rglob("*.parquet")]
        mean = sum(sizes) / len(sizes)
        largest = max(sizes)
        ratio = largest / mean
        print(f"{name:<32} {len(sizes):>6,} {mean:>8,.0f} {largest:>11,.0f} {ratio:>15.1f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, session("partitioned", "local[2]") as spark:
        main(spark, Path(folder))
