"""Format claims as Markdown tables."""

from collections.abc import Mapping, Sequence

from steelyard.experiments import Claim

VERDICTS = {True: "agrees", False: "does not", None: "no verdict"}


def claims_in_markdown(claims: Mapping[str, Sequence[Claim]]) -> str:
    """Return a table of the paper's claims and one of ours, in the order of the experiments."""
    parts = []
    for title, ours in (("Claims of the paper", False), ("Our own claims", True)):
        rows = [
            f"| {_cell(claim.said)} | {_cell(claim.section)}; {name} | {_cell(claim.measured)} | "
            f"{VERDICTS[claim.agrees]} | {_cell(claim.why)} |"
            for name, made in claims.items()
            for claim in made
            if claim.ours is ours
        ]
        if rows:
            head = (
                "| claim | section; experiment | measured | verdict | why |\n|---|---|---|---|---|"
            )
            parts.append("\n".join([f"## {title}", "", head, *rows, ""]))
    return "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
