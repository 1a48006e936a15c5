"""What the documentation shows works as it stands."""

import re
from pathlib import Path

import pytest

from steelyard.spark.session import STATE_IN_ROCKSDB
from tests.spark.streaming.running import kept

DOCS = Path(__file__).parents[2] / "docs"


BATCH = ["spark.md", "doctor.md", "apps/scoring.md", "apps/partitioned.md"]
STREAMS = ["streaming.md", "tutorial.md", "apps/naive_bayes.md", "apps/heavy_hitters.md"]


@pytest.mark.parametrize(
    "name", [*BATCH, *(pytest.param(name, marks=pytest.mark.streaming) for name in STREAMS)]
)
def test_the_guides_run(spark, tmp_path, capsys, name):
    """Block after block, in one run."""
    names = {"__name__": "guide", "spark": spark, "folder": tmp_path}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)
    assert len(blocks) > 2
    with kept(spark, STATE_IN_ROCKSDB):
        for block in blocks:
            exec(compile(block, name, "exec"), names)  # noqa: S102
    assert capsys.readouterr().out
