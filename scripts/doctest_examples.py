"""Examples in docstrings become blocks of code on the pages of the reference.

Docstrings enter as they are written, with `>>>` in the middle of the text; what leaves is Markdown,
which would otherwise take these for quotations.
"""

import re

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


class DoctestExamples(griffe.Extension):
    """Puts a fence around each example."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring of whatever griffe has found."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with a fence around each of its examples."""
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)
