"""Write the figures, the claims and the page of a reproduction."""

from collections.abc import Callable, Mapping
from pathlib import Path

from steelyard.experiments import Claim, Results, named
from steelyard.report.claims import claims_in_markdown
from steelyard.report.drawing import draw
from steelyard.report.rendering import as_png
from steelyard.report.reproduction import FigureSection, page


def write_report(
    results: Mapping[str, Results],
    folder: Path,
    fraction: float,
    drawn: Callable[[], None] = lambda: None,
) -> dict[str, list[Claim]]:
    """Write NAME.png and NAME.svg for each experiment, claims.md and report.html for all.

    Args:
        results: The results of each experiment, by its name.
        folder: The folder to write into.
        fraction: The size of the experiments, as a fraction of the full size.
        drawn: Called after each figure.

    Returns:
        The checked claims of each experiment, by its name.
    """
    sections = []
    for name in results:
        experiment = named(name)
        figure = draw(experiment, results[name])
        figure.savefig(folder / f"{experiment.name}.svg", metadata={"Date": None})
        picture = as_png(figure)
        (folder / f"{experiment.name}.png").write_bytes(picture)
        claims = experiment.claims(results[experiment.name])
        sections.append(FigureSection(experiment, picture, claims))
        drawn()
    made = {section.experiment.name: list(section.claims) for section in sections}
    (folder / "claims.md").write_text(claims_in_markdown(made), "utf-8")
    (folder / "report.html").write_text(page(sections, fraction), "utf-8")
    return made
