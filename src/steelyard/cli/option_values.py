"""Options with a fixed set of values, which are checked, completed by the shell and listed in help.

The values come from the modules that use them. They are loaded only when an option is given or the
help of its command is shown, so that importing the command line stays fast.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, get_args

import typer
from typer.core import TyperCommand


class UnknownChoiceError(ValueError):
    """An option was given a value that is not one of its choices."""


@dataclass(frozen=True)
class Choices:
    """The values that an option accepts.

    >>> Choices("rules", lambda: ("steady", "paper")).require("none")
    Traceback (most recent call last):
    ...
    steelyard.cli.option_values.UnknownChoiceError: rules must be one of steady, paper; got 'none'
    """

    label: str
    """The name of the value in error messages."""
    load: Callable[[], Iterable[str]]
    separator: str | None = None
    """The separator of values, if one option takes several."""

    def option(self, panel: str, text: str, *names: str) -> Any:
        """Declare an option; `{choices}` in its help becomes the list of values."""
        return typer.Option(*names, help=text, rich_help_panel=panel, **self._behavior)

    def argument(self, text: str, **more: Any) -> Any:
        """Declare an argument; `{choices}` in its help becomes the list of values."""
        return typer.Argument(help=text, **self._behavior, **more)

    def names(self) -> tuple[str, ...]:
        """Return all values, or none if the package that defines them is not installed."""
        try:
            return tuple(self.load())
        except ImportError:
            return ()

    def require(self, value: str) -> None:
        """Refuse a value that is not one of the choices.

        If the package that defines the choices is missing, every value passes, because the command
        itself refuses to start.
        """
        known = self.names()
        for part in value.split(self.separator) if self.separator else [value]:
            if known and part.strip() not in known:
                raise UnknownChoiceError(
                    f"{self.label} must be one of {', '.join(known)}; got {part!r}"
                )

    def check(self, context: typer.Context, parameter: typer.CallbackParam, given: Any) -> Any:
        """Refuse bad values from the command line, and return the given value."""
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and not context.resilient_parsing:
            for value in [given] if isinstance(given, str) else given:
                self.require(value)
        return given

    def complete(self, incomplete: str) -> list[str]:
        """Return the completions of an incomplete value for a shell."""
        before = ""
        if self.separator and self.separator in incomplete:
            before = incomplete.rpartition(self.separator)[0] + self.separator
        return [before + name for name in self.names()]

    @property
    def _behavior(self) -> dict[str, Any]:
        return {"callback": self.check, "autocompletion": self.complete}


@dataclass(frozen=True)
class AggregatorChoices(Choices):
    """Aggregators with the names of their columns, such as `sum:bytes`."""

    def require(self, value: str) -> None:
        from steelyard.aggregators.naming import aggregator_named

        try:
            aggregator_named(value)
        except ValueError as error:
            raise UnknownChoiceError(str(error)) from error

    def complete(self, incomplete: str) -> list[str]:
        return [name.removesuffix("COLUMN") for name in super().complete(incomplete)]


class CommandWithChoices(TyperCommand):
    """A command whose help lists the choices of its options, for terminals of any width."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.help = _without_line_breaks(self.help or "")
        self.choices = {
            str(parameter.name): choices
            for parameter in self.params
            if (choices := _choices_of(parameter)) is not None
        }
        self._templates = {name: self._parameter(name).help for name in self.choices}
        for name, template in self._templates.items():  # shells show this text
            self._parameter(name).help = template.replace(": {choices}", "")

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for name, choices in self.choices.items():
            known = ", ".join(choices.names()) or "see the documentation"
            self._parameter(name).help = self._templates[name].replace("{choices}", known)
        super().format_help(ctx, formatter)

    def _parameter(self, name: str) -> Any:
        return next(parameter for parameter in self.params if parameter.name == name)


def _without_line_breaks(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _choices_of(parameter: Any) -> Choices | None:
    check = inspect.unwrap(parameter.callback) if parameter.callback else None
    found = getattr(check, "__self__", None)
    return found if isinstance(found, Choices) else None


def _stream_sources() -> Iterable[str]:
    from steelyard.spark.streaming.stream_input import INPUTS

    return INPUTS


def _sinks() -> Iterable[str]:
    from steelyard.spark.streaming.stream_output import OUTPUTS

    return OUTPUTS


def _aggregators() -> Iterable[str]:
    from steelyard.aggregators.naming import AGGREGATORS

    return AGGREGATORS


def _doctor_sources() -> Iterable[str]:
    from steelyard.spark.doctor_input import SOURCES

    return SOURCES


def _works() -> Iterable[str]:
    from steelyard.doctor.work import WORKS

    return tuple(work.name for work in WORKS)


def _datasets() -> Iterable[str]:
    from steelyard import datasets

    return datasets.names()


def _formats() -> Iterable[str]:
    from steelyard.datasets.formats import FORMATS

    return (known.name for known in FORMATS)


def _on_malformed() -> Iterable[str]:
    from steelyard.datasets.loading import OnMalformed

    return get_args(OnMalformed)


def _schemes() -> Iterable[str]:
    from steelyard.experiments.simulate_options import scheme_names

    return scheme_names()


def _rules() -> Iterable[str]:
    from steelyard.experiments.simulate_options import RULES

    return RULES


def _services() -> Iterable[str]:
    from steelyard.experiments.simulate_options import SERVICES

    return SERVICES


def _experiments() -> Iterable[str]:
    from steelyard import experiments

    return ("all", *experiments.names())


def _strategies() -> Iterable[str]:
    from steelyard.deployment.deployed_strategies import STRATEGIES

    return ("all", *(strategy.name for strategy in STRATEGIES))


def _report_keys() -> Iterable[str]:
    from steelyard.reported_keys import REPORT_KEYS

    return REPORT_KEYS


PLACEMENTS = ("pull", "delegated", "real-time")
"""Where the workers of a stream run: in any free task slot, where their state is, or all the time,
in Spark's real-time mode."""

stream_source = Choices("source", _stream_sources)
sink = Choices("sink", _sinks)
aggregator = AggregatorChoices("agg", _aggregators)
placement = Choices("placement", lambda: PLACEMENTS)
doctor_source = Choices("source", _doctor_sources)
work = Choices("work", _works)
dataset = Choices("dataset", _datasets)
message_format = Choices("format", _formats)
on_malformed = Choices("on-malformed", _on_malformed)
scheme = Choices("scheme", _schemes)
rules = Choices("rules", _rules)
service = Choices("service", _services)
experiment = Choices("experiment", _experiments)
report_keys = Choices("report-keys", _report_keys)
strategies = Choices("schemes", _strategies, separator=",")
