from collections import Counter

import pytest
from pyspark.sql import functions as F

from steelyard.apps.heavy_hitters import heavy_hitters, summaries
from steelyard.apps.trends import trending

ASKED = {"time": "at", "window": "1 hour", "workers": 4}


@pytest.fixture(scope="module")
def visits(spark):
    """Return visits of four hours: the share of one page grows, and some visits have no key."""
    return spark.range(0, 4000, 1, 4).selectExpr(
        "id",
        "CASE WHEN id % 10 <= id DIV 1000 * 2 THEN 'hot' WHEN id % 97 = 50 THEN null "
        "ELSE string(pmod(xxhash64(id), 300)) END AS page",
        "if(id = 7, null, timestamp_seconds(id * 3600 DIV 1000)) AS at",
    )


def exact(visits):
    """Return the exact counts of each key and window, computed by Spark."""
    rows = visits.where("page IS NOT NULL AND at IS NOT NULL")
    found = rows.groupBy(F.window("at", "1 hour")["start"], "page").count().collect()
    counts = {}
    for start, page, count in found:
        counts.setdefault(start, Counter())[page] = count
    return counts


@pytest.mark.parametrize("capacity", [8, 400])
def test_bounds_hold_in_every_window(visits, capacity):
    """The bounds hold if the capacity is too small; counts are exact if it is large enough."""
    truth = exact(visits)
    found = summaries(heavy_hitters(visits, "page", **ASKED, capacity=capacity))
    assert sorted(truth) == [summary.start for summary in found]
    for summary in found:
        counts = truth[summary.start]
        assert counts.total() == summary.messages
        for page, count in counts.items():
            share = summary.share(page)
            assert share.least <= count / summary.messages <= share.most
        assert summary.error <= summary.messages / (capacity + 1)
        if capacity > 300:
            assert counts == summary.counts
    trends = list(trending(found, 1))
    assert ["hot"] * 3 == [trend.key for trend in trends]
    assert all(trend.gain > 0.05 for trend in trends)


def test_the_key_may_be_an_expression(visits):
    """Its values are counted like those of a column, and names may be in another case."""
    upper = visits.withColumn("page", F.upper("page"))
    asked = ASKED | {"time": "AT"}
    found = summaries(heavy_hitters(visits, F.upper("page"), **asked, capacity=400))
    assert exact(upper) == {summary.start: summary.counts for summary in found}


def test_counts_are_exact_after_a_shuffle_and_in_sliding_windows(visits):
    """The counts do not depend on the order of rows; each message is in two windows."""
    shuffled = visits.repartition(3, "id")
    here = summaries(heavy_hitters(shuffled, "page", **ASKED, capacity=400, slide="30 minutes"))
    whole = [summary for summary in here if summary.start.minute == 0]
    assert exact(visits) == {summary.start: summary.counts for summary in whole}
    assert {"hot"} == {trend.key for trend in trending(here, 1)}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"key": "no"}, "key: there is no column 'no'; the columns are id, page, at"),
        ({"time": "no"}, "time: there is no column 'no'"),
        ({"time": "id"}, "time: column 'id' must be a timestamp, got bigint"),
        ({"capacity": 0}, "capacity must be a whole number, at least 1, got 0"),
        ({"workers": 0}, "workers must be a whole number, at least 1, got 0"),
    ],
)
def test_bad_arguments_get_one_sentence(visits, changed, sentence):
    """The error comes before any work starts."""
    with pytest.raises(ValueError, match=sentence):
        heavy_hitters(visits, **{"key": "page", **ASKED, **changed})
