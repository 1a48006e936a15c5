"""The physical plan of a frame, as text and as a list of its exchanges and joins."""

import contextlib
import io
import re


def explained(frame, mode="simple"):
    """Return the physical plan, or another text of EXPLAIN; the final one, if it is adaptive."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain(mode=mode)
    # Subqueries have initial plans, too; only that of the whole query begins its line.
    return text.getvalue().split("\n+- == Initial Plan ==")[0]


def operators(frame):
    """Return the exchanges and joins of the physical plan."""
    return sorted(re.findall(r"\w*Exchange \w+|\w+Join\b|AQEShuffleRead", explained(frame)))
