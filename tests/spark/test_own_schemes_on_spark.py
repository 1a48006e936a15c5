"""A scheme of the user routes in the source tasks of a batch job."""

from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from tests.schemes.test_own_schemes import LeastLoaded


def places(frame, scheme):
    """Return the worker of each row."""

    def ids(table):
        return pa.table({"id": table["id"]})

    grouped = sy.group_by(frame, "page", workers=4, routing=scheme)
    made = grouped.map_arrow(ids, "id long").select("id", F.spark_partition_id())
    return sorted(map(tuple, made.collect()))


def test_a_scheme_in_plain_python_routes_like_the_compiled_one(spark):
    """Every row goes to the same worker as with partial key grouping."""
    rows = spark.range(0, 4000, 1, 2).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    mine = places(rows, LeastLoaded())
    assert [row[0] for row in mine] == list(range(4000))
    assert mine == places(rows, sy.schemes.named("pkg"))


@dataclass(frozen=True)
class NoRouter(sy.schemes.Scheme):
    """Returns no router."""

    name = "no-router"

    def router(self, bins, seed=0):
        """Return a number."""
        return bins


def test_a_scheme_without_a_router_is_refused_at_once(spark):
    """The error comes before a task fails."""
    with pytest.raises(TypeError, match=r"NoRouter.router must return a .*Router, got int"):
        sy.group_by(spark.range(9), "id", workers=2, routing=NoRouter())
