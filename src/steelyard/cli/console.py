"""What all commands share: where they write, how they show progress, how they complain."""

from typing import NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

console = Console()
complaints = Console(stderr=True)


def progress_bar() -> Progress:
    """A bar on standard error that goes away when the work is done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=complaints,
        transient=True,
    )


def complain(error: Exception) -> NoReturn:
    """One sentence on what is wrong with what was given, and exit code 2."""
    raise typer.BadParameter(str(error)) from error


def numbers(name: str, text: str) -> list[float]:
    """The numbers of a text such as 1,2.5,1."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers with commas between, got {text!r}") from None
