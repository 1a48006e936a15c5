"""Plans and examinations of counts by Spark equal the recorded ones."""

import json

import steelyard as sy
from tests.golden.records import HERE


def rows(spark):
    """Return rows of which a third have the same key."""
    return spark.range(0, 6_000, 1, 4).selectExpr("if(id % 3 = 0, 'hot', string(id % 50)) AS page")


def test_the_plan_of_a_frame_equals_its_record(spark):
    """Spark hashes keys as this package does, and the defaults have not changed."""
    found = json.loads(
        sy.plan(rows(spark), "page", workers=4, routing=sy.Balance(buckets=64)).to_json()
    )
    assert json.loads((HERE / "plan_of_a_frame.json").read_text()) == found


def test_the_numbers_of_an_examination_equal_their_record(spark):
    """`steelyard doctor --json` prints them. The recommendation is text and not compared."""
    found = json.loads(sy.doctor.examine(rows(spark), "page", workers=4).to_json())
    del found["recommendation"]
    assert json.loads((HERE / "examination.json").read_text()) == found
