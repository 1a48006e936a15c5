"""The page of a reproduction: every figure beside its claims, in one HTML file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import steelyard
from steelyard.experiments import Claim, Experiment
from steelyard.report.rendering import as_text, rendered


@dataclass(frozen=True)
class FigureSection:
    """An experiment, its figure and its checked claims."""

    experiment: Experiment
    png: bytes
    claims: Sequence[Claim]

    @property
    def picture(self) -> str:
        """The figure as text, for embedding into a page."""
        return as_text(self.png)


def page(sections: Sequence[FigureSection], fraction: float) -> str:
    """Return the page as HTML."""
    claims = [claim for section in sections for claim in section.claims if not claim.ours]
    return rendered(
        "report.html",
        sections=sections,
        fraction=fraction,
        version=steelyard.__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        agree=sum(claim.agrees is True for claim in claims),
        differ=sum(claim.agrees is False for claim in claims),
        open=sum(claim.agrees is None for claim in claims),
    )
