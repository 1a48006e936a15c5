"""Write the figures and the page of a deployment experiment."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.report.deployment_figures import (
    changing_figure,
    latency_figure,
    latency_over_delay_figure,
    share_figure,
    throughput_figure,
)
from steelyard.report.deployment_summary import SummaryRow
from steelyard.report.rendering import as_png, as_text, rendered

if TYPE_CHECKING:
    from steelyard.deployment.grid_settings import GridSettings


def write_deployment_report(
    lines: Sequence[SummaryRow], setting: "GridSettings", folder: Path
) -> None:
    """Write the figures as PNG and SVG, and report.html with all figures."""
    figures = {
        "share": share_figure(lines),
        "throughput": throughput_figure(lines),
        "latency": latency_figure(lines),
        "latency-delays": latency_over_delay_figure(lines),
    }
    if (folder / "series.csv").exists():
        figures["changing"] = changing_figure(folder)
    pictures = {}
    for name, figure in figures.items():
        if figure is None:
            continue
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        picture = as_png(figure)
        (folder / f"{name}.png").write_bytes(picture)
        pictures[name] = as_text(picture)
    page = rendered("deployment.html", lines=lines, setting=setting, pictures=pictures)
    (folder / "report.html").write_text(page, "utf-8")
