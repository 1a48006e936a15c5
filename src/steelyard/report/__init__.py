"""Draw figures and write pages of results."""

from steelyard.report.claims import claims_in_markdown
from steelyard.report.drawing import draw
from steelyard.report.reproduction import page

__all__ = ["claims_in_markdown", "draw", "page"]
