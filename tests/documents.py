"""Read the pages of the documentation, their code blocks and commands."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

# The Python of these pages runs without Spark, on Spark, or in streaming tests.
PLAIN = ["docs/how-it-works.md", "docs/settings.md"]
BATCH = [
    "README.md",
    "docs/spark.md",
    "docs/doctor.md",
    "docs/from-salting.md",
    "docs/personal-data.md",
    "docs/own-schemes.md",
    "docs/apps/scoring.md",
    "docs/apps/partitioned.md",
]
STREAMS = [
    "docs/streaming.md",
    "docs/tutorial.md",
    "docs/apps/naive_bayes.md",
    "docs/apps/heavy_hitters.md",
]
REAL_TIME = ["docs/real-time.md"]
"""Pages whose Python needs a broker and Spark 4.3."""
NOTEBOOKS = ["docs/first-steps.md"]
"""Pages that are made from a notebook, which tests/spark/test_notebook.py runs."""


def pages() -> list[str]:
    """Return the paths of all pages, relative to the project."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page.relative_to(ROOT).as_posix() for page in found]


def text_of(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text("utf-8")


def python_blocks(page: str) -> list[str]:
    """Return the Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    """Return the shell commands of a page, with joined lines, and its inline code."""
    text = text_of(page)
    blocks = re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [line.strip() for line in lines] + re.findall(r"`([^`\n]+)`", prose)


def run_python(page: str, names: dict[str, object]) -> int:
    """Run the Python blocks of a page in order; return their number."""
    blocks = python_blocks(page)
    for block in blocks:
        exec(compile(block, page, "exec"), names)  # noqa: S102
    return len(blocks)
