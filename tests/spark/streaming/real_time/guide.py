"""The Python of docs/real-time.md, with a broker.

`python -m tests.spark.streaming.real_time.guide FOLDER` writes what it found as JSON.
"""

import json
import sys
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.documents import REAL_TIME, run_python
from tests.spark.streaming.real_time.on_kafka import kafka_and_spark


def main(folder):
    """Send visits to a topic, and run the page."""
    folder = Path(folder)
    with kafka_and_spark(folder) as (servers, spark):
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic(name, 4, 1) for name in ("visits", "scores", "partials")]
        for made in admin.create_topics(topics).values():
            made.result(60)
        rows = spark.range(1000).selectExpr(
            "if(id % 2 = 0, 'front page', concat('page ', id % 70)) AS key",
            "lpad(id, 9, '0') AS value",
        )
        writer = rows.write.format("kafka").option("kafka.bootstrap.servers", servers)
        writer.option("topic", "visits").save()
        names = {"__name__": "guide", "spark": spark, "servers": servers, "folder": folder}
        blocks = run_python(REAL_TIME[0], names)
        sy, rows = names["sy"], names["of_topic"]
        totals = sy.merge_partials(rows, sy.Count(), sy.Mean("size")).collect()
        found = {"blocks": blocks, "totals": [list(row) for row in totals]}
        (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
