"""What Spark counts, and what follows from it, is as recorded."""

import json

import steelyard as sy
from tests.golden.records import HERE


def rows(spark):
    """A third of the rows are of one key."""
    return spark.range(0, 6_000, 1, 4).selectExpr("if(id % 3 = 0, 'hot', string(id % 50)) AS page")


def test_a_plan_of_a_frame_is_as_recorded(spark):
    """Spark hashes keys as this package does, and the defaults are the same."""
    found = json.loads(
        sy.plan(rows(spark), "page", workers=4, routing=sy.Balance(buckets=64)).to_json()
    )
    assert json.loads((HERE / "plan_of_a_frame.json").read_text()) == found


def test_the_numbers_of_an_examination_are_as_recorded(spark):
    """`steelyard doctor --json` prints them; the recommendation is text, and not compared."""
    found = json.loads(sy.doctor.examine(rows(spark), "page", workers=4).to_json())
    del found["recommendation"]
    assert json.loads((HERE / "examination.json").read_text()) == found
