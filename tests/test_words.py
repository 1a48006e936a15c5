"""Retired words stay out of the code, the tests and the documentation.

They belong to a private language that readers had to translate. `docs/glossary.md` has the terms to
use instead.
"""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]

CHECKED = (
    ".github",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "benchmarks",
    "conftest.py",
    "docs",
    "examples",
    "pyproject.toml",
    "scripts",
    "src",
    "tests",
)
"""The files and folders that are checked."""

RETIRED = (
    "anew",
    "as many as",
    "gone on with",
    "heard",
    "hears",
    "heed",
    "is no trouble",
    "lonely",
    "looks",
    "owns nothing",
    "quarantine",
    "rounds",
    "so many",
    "stirred",
    "tells",
    "told",
    "ways",
    "what comes",
    "what was",
    "whoever",
    "wish",
    "wishes",
)
"""The words and phrases that must not be used, in lower case."""

NOT_PROSE = {".csv", ".json", ".png"}


def pattern():
    """Return a pattern that finds each retired phrase.

    Words end at underscores too, so parts of identifiers are found. A phrase may be wrapped into
    the next line of a paragraph or a comment.
    """
    between = r"(?:[ _]|[ ]*\n[ #>]*)"
    phrases = (between.join(phrase.split()) for phrase in RETIRED)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(phrases)})(?![^\W_])", re.IGNORECASE)


def retired_words(text):
    r"""Yield the line number and the words of each retired phrase in a text.

    >>> list(retired_words("so many ways\nalways test_what_was_TOLD, so\n    # many"))
    [(1, 'so many'), (1, 'ways'), (2, 'what was'), (2, 'told'), (2, 'so many')]
    """
    for found in pattern().finditer(text):
        words = re.sub(r"[\W_]+", " ", found[0]).lower()
        yield text.count("\n", 0, found.start()) + 1, words


def violations():
    """Return the retired words of all files, as path:line: word."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *CHECKED],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    found = []
    for name in sorted(set(listed.stdout.splitlines())):
        path = ROOT / name
        if path.is_file() and path.suffix not in NOT_PROSE and path != Path(__file__):
            words = retired_words(path.read_text("utf-8"))
            found += [f"{name}:{line}: {word}" for line, word in words]
    return found


def test_no_retired_word_is_used():
    """Each violation is reported as path:line: word."""
    assert violations() == []
