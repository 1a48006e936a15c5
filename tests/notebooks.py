"""Run the cells of a notebook, without Jupyter, and show their outputs.

The JSON of a notebook enters; its outputs leave, and a page of the documentation.
"""

import ast
import contextlib
import html
import io
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "first_steps.ipynb"
PAGE = ROOT / "docs" / "first-steps.md"
"""The notebook as a page, which `scripts/execute-notebook` writes."""


def load(path=NOTEBOOK):
    """Return the content of a notebook."""
    return json.loads(path.read_text("utf-8"))


def save(notebook, path=NOTEBOOK):
    """Write a notebook as Jupyter does."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


def code_cells(notebook):
    """Return the cells with code, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(cell, names):
    """Run a cell with these names; return its outputs as Jupyter stores them.

    The value of a last expression is shown as text and, if it has `_repr_html_`, as HTML.
    """
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "notebook", "exec"), names)  # noqa: S102
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)  # noqa: S307
    outputs = []
    if printed.getvalue():
        stream = {"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())}
        outputs.append(stream)
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append({"output_type": "execute_result", "data": data, "metadata": {}})
    return outputs


def as_page(notebook):
    """Return a notebook with its stored outputs as a page in Markdown."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _output(output):
    data = output.get("data", {})
    if "text/html" in data:
        # Without line breaks, Markdown takes the HTML as one block.
        return "".join(data["text/html"])
    text = "".join(output.get("text", data.get("text/plain", [])))
    return f"<pre>{html.escape(text.rstrip(), quote=False)}</pre>"


def _lines(text):
    return text.splitlines(keepends=True)
