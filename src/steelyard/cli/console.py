"""What all commands share: where they print, how they show progress, how they end with an error."""

from importlib.util import find_spec
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from steelyard.printable import printable


class PlainConsole(Console):
    """A console for which every string is one line of plain text, also in tables.

    A string may hold keys, paths and messages of others: markup in it is not interpreted, and what
    a terminal would obey is escaped. Styles are arguments, and lines of their own are printed by
    themselves. Only `Text` is printed as it is, so data in it has to pass `printable`.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, **settings)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text), **how)


console = PlainConsole()
error_console = PlainConsole(stderr=True)


def progress_bar() -> Progress:
    """A bar on standard error that goes away when the work is done."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=error_console,
        transient=True,
    )


def refuse(error: Exception) -> NoReturn:
    """End the command with exit code 2 and one sentence on what is wrong with its options."""
    raise typer.BadParameter(printable(error)) from error


def require_packages(what: str, extra: str, *packages: str) -> None:
    """Refuse to start if a package is missing, before any work starts; `extra` is what brings them.

    Nothing is on an index, so the sentence is right for a clone.
    """
    for package in packages:
        if find_spec(package) is None:
            how = f"install it with 'pip install \".[{extra}]\"' in a clone of steelyard"
            refuse(ImportError(f"{what} needs {package}: {how}"))


def examples(*commands: str) -> str:
    r"""The end of a help page: commands to copy, each in a line of its own.

    Typer joins lines unless an empty one is between them. A command of more than 78 characters
    would be cut in two on a terminal of 80.

    >>> examples("steelyard demo")
    'Example:\n\n[bold]steelyard demo[/bold]'
    """
    title = "Example:" if len(commands) == 1 else "Examples:"
    return "\n\n".join([title, *(f"[bold]{escape(command)}[/bold]" for command in commands)])


def numbers(name: str, text: str) -> list[float]:
    """The numbers of a text such as 1,2.5,1."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers with commas between, got {text!r}") from None
