"""The pages for people, and what is in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Where the Python of each page is run: without Spark, on Spark, or in streams.
PLAIN = ["docs/how-it-works.md", "docs/settings.md"]
BATCH = [
    "README.md",
    "docs/spark.md",
    "docs/doctor.md",
    "docs/from-salting.md",
    "docs/personal-data.md",
    "docs/apps/scoring.md",
    "docs/apps/partitioned.md",
]
STREAMS = [
    "docs/streaming.md",
    "docs/tutorial.md",
    "docs/apps/naive_bayes.md",
    "docs/apps/heavy_hitters.md",
]


def pages() -> list[str]:
    """All of them, by their paths in the project."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page.relative_to(ROOT).as_posix() for page in found]


def text_of(page: str) -> str:
    """What a page says."""
    return (ROOT / page).read_text("utf-8")


def python_blocks(page: str) -> list[str]:
    """Its blocks of Python."""
    return re.findall(r"^```python\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    """Its lines of shell, each in one line, and the code within its sentences."""
    text = text_of(page)
    blocks = re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [line.strip() for line in lines] + re.findall(r"`([^`\n]+)`", prose)


def run_python(page: str, names: dict[str, object]) -> int:
    """Run its blocks, one after the other; how many there are."""
    blocks = python_blocks(page)
    for block in blocks:
        exec(compile(block, page, "exec"), names)  # noqa: S102
    return len(blocks)
