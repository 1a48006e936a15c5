"""Render pages: templates and values enter, HTML with embedded figures leaves."""

import base64
import io
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from steelyard.printable import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rendered(template: str, **values: object) -> str:
    """Render a template as HTML; values are escaped and shown as plain text."""
    environment = Environment(
        loader=PackageLoader("steelyard.report"),
        autoescape=True,
        trim_blocks=True,
        finalize=_printable,
    )
    return environment.get_template(template).render(**values)


def _printable(value: object) -> object:
    """Escape unprintable characters of a value; markup of the template stays unchanged."""
    return value if isinstance(value, Markup) else printable(value)


def as_png(figure: "Figure") -> bytes:
    """Return a figure as a PNG file."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=130)
    return picture.getvalue()


def as_text(png: bytes) -> str:
    """Encode a PNG file as text, for embedding into a page."""
    return base64.b64encode(png).decode()
