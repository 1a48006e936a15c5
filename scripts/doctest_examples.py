"""Turn the examples in docstrings into code blocks on the pages of the reference.

Docstrings with `>>>` examples enter; Markdown with fenced code blocks leaves. Without fences,
Markdown would render the examples as quotations.
"""

import re

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


class DoctestExamples(griffe.Extension):
    """A griffe extension that puts a fence around each example."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring of every object that griffe finds."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring with a fence around each of its examples."""
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)
