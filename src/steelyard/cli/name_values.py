"""Options that are repeated as NAME=VALUE: texts of the command line enter; settings leave.

A value may also come from the environment (NAME=env:VARIABLE), and settings from the lines of a
file (@FILE), so that secrets need not be on the command line.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from steelyard.cli.console import print_defects_without_secrets
from steelyard.control.redaction import is_secret, keep_secret, secret_parts

_NAME = re.compile(r"[A-Za-z][\w.:/-]*", re.ASCII)
_FROM_ENVIRONMENT = "env:"
_FORMS = "NAME=VALUE, NAME=env:VARIABLE or @FILE"


@dataclass(frozen=True)
class NameValues:
    """A repeated option with settings.

    >>> NameValues("conf").settings(["spark.driver.memory=4g"])
    {'spark.driver.memory': '4g'}
    >>> NameValues("conf").settings(["spark.driver.memory"])
    Traceback (most recent call last):
    ...
    ValueError: conf must be NAME=VALUE, NAME=env:VARIABLE or @FILE, got 'spark.driver.memory'
    """

    label: str
    """The name of the option in error messages."""
    suggested: tuple[str, ...] = ()
    """Names that a shell completes."""

    def option(self, panel: str, text: str, *names: str) -> Any:
        """Declare the option in a panel of the help."""
        return typer.Option(
            *names,
            help=text,
            rich_help_panel=panel,
            metavar="NAME=VALUE",
            autocompletion=self.complete,
        )

    def settings(self, given: Iterable[str] | None) -> dict[str, str]:
        """Return the settings; the last value of a name is valid.

        From here on the errors of this process show no value that is a secret.

        Raises:
            ValueError: A text is malformed, or a file or a variable does not exist.
        """
        found = {}
        for text in given or ():
            for where, setting in self._lines(text):
                name, value = self._parsed(where, setting)
                found[name] = self._resolved(name, value)
        return found

    def complete(self, incomplete: str) -> list[str]:
        """Return the names that begin with an incomplete text, for a shell."""
        return [f"{name}=" for name in self.suggested if name.startswith(incomplete)]

    def _lines(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield each setting, after its place for error messages."""
        if not text.startswith("@"):
            yield "", text
            return
        try:
            lines = Path(text[1:]).read_text("utf-8").splitlines()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ValueError(
                f"{self.label}: the file {text[1:]!r} cannot be read: {why}"
            ) from error
        for number, line in enumerate(map(str.strip, lines), 1):
            if line and not line.startswith("#"):
                yield f"{text[1:]!r}, line {number}", line

    def _parsed(self, where: str, setting: str) -> tuple[str, str]:
        name, equals, value = map(str.strip, setting.partition("="))
        if equals and _NAME.fullmatch(name):
            return name, value
        # A line of a file may be a secret.
        raise ValueError(
            f"{self.label}: {where} must be NAME=VALUE or NAME=env:VARIABLE"
            if where
            else f"{self.label} must be {_FORMS}, got {_shown(setting)!r}"
        )

    def _resolved(self, name: str, value: str) -> str:
        """Return the value, from the environment if it says so; keep secrets off the screen."""
        is_hidden = is_secret(name)
        if value.startswith(_FROM_ENVIRONMENT):
            variable = value.removeprefix(_FROM_ENVIRONMENT)
            if variable not in os.environ:
                raise ValueError(
                    f"{self.label}: {name} needs the environment variable {variable!r}, "
                    "which is not set"
                )
            value, is_hidden = os.environ[variable], True
        if is_hidden:
            keep_secret(secret_parts(value))
            print_defects_without_secrets()
        return value


def require_not_given(label: str, settings: Iterable[str], instead: Mapping[str, str]) -> None:
    """Refuse settings that have an option of their own.

    Args:
        label: The option in which they are given.
        settings: The names that are given.
        instead: The option for each setting, by its name in lower case.
    """
    for name in settings:
        if name.lower() in instead:
            raise ValueError(f"{label}: {name} has an option: pass {instead[name.lower()]}")


def _shown(setting: str) -> str:
    """Return the begin of a malformed setting, without a value that may be a secret."""
    name, equals, _ = setting.partition("=")
    shown = name if len(name) <= 40 and not is_secret(name) else f"{name[:10]}..."
    return shown + ("=..." if equals else "")


CONF = NameValues(
    "conf",
    (
        "spark.driver.memory",
        "spark.executor.cores",
        "spark.executor.instances",
        "spark.executor.memory",
        "spark.jars.packages",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.sql.session.timeZone",
    ),
)
"""Settings of Spark."""

_KAFKA = (
    "kafka.security.protocol",
    "kafka.sasl.mechanism",
    "kafka.sasl.jaas.config",
    "kafka.ssl.truststore.location",
    "kafka.ssl.truststore.password",
)

SOURCE_OPTIONS = NameValues("option", (*_KAFKA, "maxOffsetsPerTrigger", "startingOffsets"))
"""Options of Spark's source."""

SINK_OPTIONS = NameValues("out-option", (*_KAFKA, "compression"))
"""Options of Spark's sink."""
