"""Constant arrays in Spark expressions: an array of numbers enters; a column leaves."""

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F


def constant_array(values: NDArray[np.integer]) -> Column:
    """Return a constant array, written as text that Spark parses once.

    One literal for each value would need thousands of calls.
    """
    kind = "BIGINT" if values.dtype == np.int64 else "INT"
    text = ",".join(map(str, values.tolist()))
    return F.split(F.lit(text), ",").cast(f"ARRAY<{kind}>")
