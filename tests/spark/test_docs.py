"""The code blocks of the documentation run."""

import pytest

from steelyard.spark.session import STATE_IN_ROCKSDB
from tests.documents import BATCH, STREAMS, run_python
from tests.spark.streaming.running import kept

STREAMING = [pytest.mark.streaming, pytest.mark.needs_spark("4.0", reason="sy.group_stream")]


@pytest.mark.parametrize(
    "page", [*BATCH, *(pytest.param(page, marks=STREAMING) for page in STREAMS)]
)
def test_the_guides_run(spark, tmp_path, capsys, page):
    """All blocks of a page run in order, in one namespace."""
    with kept(spark, STATE_IN_ROCKSDB):
        ran = run_python(page, {"__name__": "guide", "spark": spark, "folder": tmp_path})
    assert ran > 2 or page == "README.md"
    assert capsys.readouterr().out
