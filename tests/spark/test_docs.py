"""What the documentation shows works as it stands."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_guide_runs(spark, tmp_path, capsys):
    """Block after block, in one run."""
    names = {"__name__": "guide", "spark": spark, "folder": tmp_path}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) > 5
    for block in blocks:
        exec(compile(block, GUIDE.name, "exec"), names)  # noqa: S102
    assert "hot" in capsys.readouterr().out
