"""Figures and pages from results."""

from steelyard.report.claims import claims_in_markdown
from steelyard.report.figures import draw
from steelyard.report.page import page

__all__ = ["claims_in_markdown", "draw", "page"]
