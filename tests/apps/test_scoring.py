from collections import Counter

import pyarrow as pa
import pytest

from steelyard.apps.scoring import key_by_key, score_by_key


def total(profile, rows):
    """Return the loaded data of a key and the number of its rows."""
    return pa.table({"user": rows["user"][:1], "profile": [profile], "rows": [rows.num_rows]})


SCHEMA = "user string, profile string, rows long"


def test_every_row_is_scored_with_the_data_of_its_key(spark):
    """Rows of hot keys, light keys and null keys are scored once, for any split."""
    rows = spark.range(4000).selectExpr(
        "if(id % 2 = 0, 'hot', if(id % 40 = 1, null, string(id % 300))) AS user", "id"
    )
    found = score_by_key(
        rows, "user", load=lambda user: f"of {user}", score=total, schema=SCHEMA, workers=4
    ).collect()
    counted = Counter()
    for user, profile, number in found:
        assert profile == f"of {user}"
        counted[user] += number
    expected = {row["user"]: row["count"] for row in rows.groupBy("user").count().collect()}
    assert expected == counted
    assert 2 <= sum(row["user"] == "hot" for row in found) <= 4, "on as few workers as possible"


def test_a_key_is_loaded_once():
    """A task loads the data of a key once for all its tables."""
    loads = []
    scored = key_by_key("user", loads.append, total)
    for users in (["b", "a", "b", None], ["a", "c", None]):
        made = scored(pa.table({"user": pa.array(users)}))
        assert len(users) == sum(made["rows"].to_pylist())
    assert ["b", "a", None, "c"] == loads


def test_a_load_that_is_not_callable_is_refused(spark):
    with pytest.raises(TypeError, match="load must be callable, got 3"):
        score_by_key(spark.range(1), "id", load=3, score=total, schema=SCHEMA, workers=2)
