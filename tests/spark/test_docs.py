"""What the documentation shows works as it stands."""

import re
from pathlib import Path

import pytest

from steelyard.spark.session import STATE_IN_ROCKSDB
from tests.spark.streaming.running import kept

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    "name", ["spark.md", "doctor.md", pytest.param("streaming.md", marks=pytest.mark.streaming)]
)
def test_the_guides_run(spark, tmp_path, capsys, name):
    """Block after block, in one run."""
    names = {"__name__": "guide", "spark": spark, "folder": tmp_path}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)
    assert len(blocks) > 4
    with kept(spark, STATE_IN_ROCKSDB):
        for block in blocks:
            exec(compile(block, name, "exec"), names)  # noqa: S102
    assert capsys.readouterr().out
