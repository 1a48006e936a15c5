"""Templates and values enter; pages leave, with their pictures in them."""

import base64
import io
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from steelyard.printable import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rendered(template: str, **values: object) -> str:
    """A page as HTML; what comes from data is escaped, and is shown as it is."""
    environment = Environment(
        loader=PackageLoader("steelyard.report"),
        autoescape=True,
        trim_blocks=True,
        finalize=_printable,
    )
    return environment.get_template(template).render(**values)


def _printable(value: object) -> object:
    """A value of a template; what a template made itself is finished."""
    return value if isinstance(value, Markup) else printable(value)


def as_png(figure: "Figure") -> bytes:
    """A figure as a picture."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=130)
    return picture.getvalue()


def as_text(png: bytes) -> str:
    """A picture as text that a page can hold."""
    return base64.b64encode(png).decode()
