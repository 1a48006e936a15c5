"""Templates and values enter; pages leave, with their pictures in them."""

import base64
import io
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rendered(template: str, **values: object) -> str:
    """A page as HTML; what comes from data is escaped."""
    environment = Environment(
        loader=PackageLoader("steelyard.report"), autoescape=True, trim_blocks=True
    )
    return environment.get_template(template).render(**values)


def as_png(figure: "Figure") -> bytes:
    """A figure as a picture."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=130)
    return picture.getvalue()


def as_text(png: bytes) -> str:
    """A picture as text that a page can hold."""
    return base64.b64encode(png).decode()
