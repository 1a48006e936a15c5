"""Consoles, progress bars and errors of all commands."""

import sys
import traceback
from importlib.util import find_spec
from types import TracebackType
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from steelyard.control.redaction import without_kept
from steelyard.printable import printable


def print_defects_without_secrets() -> None:
    """Replace secrets also in the traceback of a defect."""
    sys.excepthook = _print_defect


def presentable(text: object) -> str:
    """Return a text for an error: one line, without control characters and secrets."""
    return printable(without_kept(str(text)))


def _print_defect(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    sys.stderr.write(without_kept("".join(traceback.format_exception(kind, error, trace))))


class PlainConsole(Console):
    """A console that prints every string as one line of plain text, also in tables.

    A string may contain keys, paths and foreign messages: its markup is not interpreted, and
    control characters are escaped. Pass styles as arguments, and print each line separately. A
    `Text` is printed unchanged, so data in it has to pass `printable`.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, **settings)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text), **how)


class ErrorConsole(PlainConsole):
    """A console on standard error, which shows no secret."""

    def __init__(self) -> None:
        super().__init__(stderr=True)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(presentable(text), **how)


console = PlainConsole()
error_console = ErrorConsole()


def progress_bar() -> Progress:
    """Return a progress bar on standard error that disappears at the end."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=error_console,
        transient=True,
    )


def refuse(error: Exception) -> NoReturn:
    """End the command with exit code 2 and the sentence of an error."""
    raise typer.BadParameter(presentable(error)) from error


def require_packages(what: str, extra: str, *packages: str) -> None:
    """Refuse to start if a package is missing; `extra` is the extra that installs the packages.

    Steelyard is on no package index, so the sentence explains the installation from a clone.
    """
    for package in packages:
        if find_spec(package) is None:
            how = f"install it with 'pip install \".[{extra}]\"' in a clone of steelyard"
            refuse(ImportError(f"{what} needs {package}: {how}"))


def examples(*commands: str) -> str:
    r"""Return the end of a help page: commands to copy, each in its own line.

    Typer joins lines unless an empty line separates them. A command of more than 78 characters
    would be wrapped on a terminal of 80 columns.

    >>> examples("steelyard demo")
    'Example:\n\n[bold]steelyard demo[/bold]'
    """
    title = "Example:" if len(commands) == 1 else "Examples:"
    return "\n\n".join([title, *(f"[bold]{escape(command)}[/bold]" for command in commands)])


def numbers(name: str, text: str) -> list[float]:
    """Parse numbers that are separated by commas, such as 1,2.5,1."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers separated by commas, got {text!r}") from None
