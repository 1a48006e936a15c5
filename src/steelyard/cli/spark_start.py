"""The start of Spark by a command: a status line first, then the imports, then a session.

The name of an application and its settings enter; a session leaves. Importing Spark and starting it
takes many seconds, so the command says what it does before it imports anything large.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from rich.live import Live
from rich.spinner import Spinner

from steelyard.cli.console import error_console
from steelyard.cli.name_values import CONF, require_not_given
from steelyard.cli.option_values import CommandWithChoices


class StatusLine:
    """A line on the terminal, on standard error; it disappears when the command goes on."""

    def __init__(self) -> None:
        self._live: Live | None = None

    def show(self) -> None:
        """Show the line now; a line that is not on a terminal is not shown."""
        if self._live is None and error_console.is_terminal:
            spinner = Spinner("dots", "Starting Spark ...")
            # Standard output stays untouched, because it may be a file or JSON.
            self._live = Live(spinner, console=error_console, transient=True, redirect_stdout=False)
            self._live.start(refresh=True)

    def remove(self) -> None:
        """Remove the line before something else is printed."""
        if self._live is not None:
            self._live.stop()
            self._live = None


status_line = StatusLine()
"""The line of this process."""


class SparkCommand(CommandWithChoices):
    """A command that starts Spark, and says so before it loads or checks anything."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **named: Any) -> Any:
        with _interruptible():
            if not {"-h", "--help", "--list"} & set(args) and not named.get("resilient_parsing"):
                status_line.show()
            try:
                return super().make_context(info_name, args, *more, **named)
            except BaseException:
                status_line.remove()
                raise

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        with _interruptible():
            try:
                return super().invoke(ctx)
            finally:
                status_line.remove()


@contextmanager
def _interruptible() -> Iterator[None]:
    """End with one line and exit code 130 after Ctrl-C, like other programs."""
    try:
        yield
    except KeyboardInterrupt:
        error_console.print("Interrupted. No process of Spark is left.")
        raise typer.Exit(130) from None


def settings_of(
    conf: Iterable[str] | None, instead: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the settings of --conf.

    Args:
        conf: The values of --conf.
        instead: The options that set a setting of Spark; by default --master.

    Raises:
        ValueError: A value is malformed, or a setting has an option of its own.
    """
    settings = CONF.settings(conf)
    require_not_given("conf", settings, instead or {"spark.master": "--master"})
    return settings


@contextmanager
def running_spark(name: str, master: str, settings: Mapping[str, str]) -> Iterator[Any]:
    """Use a session for a command, and show the status line until it runs.

    Args:
        name: The name of the command.
        master: The Spark master.
        settings: Settings for a session that is started here. Its log is shown if it does not
            start.

    Yields:
        The session.
    """
    status_line.show()
    from steelyard.spark.session import session

    with (
        TemporaryDirectory(prefix="steelyard-", ignore_cleanup_errors=True) as folder,
        session(f"steelyard {name}", master, settings, Path(folder) / "spark.log") as spark,
    ):
        status_line.remove()
        yield spark
