"""One simulation of a user's own choice.

Settings enter, from flags or a file, and are checked; a configuration leaves, which runs like any
other.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from steelyard import datasets, schemes
from steelyard.datasets.loading import OnMalformed
from steelyard.delegation import PaperRules, SteadyRules
from steelyard.experiments.configuration import Configuration, series
from steelyard.experiments.experiment import Experiment, Panel
from steelyard.experiments.paper_setup import machines
from steelyard.experiments.streams import FileStream, Source
from steelyard.simulator import (
    Cluster,
    ConsistentGrouping,
    Direct,
    Exponential,
    Grouping,
    Plans,
)
from steelyard.validation import require_between, require_whole

SCHEMES = ("cg", "plans", *schemes.names())
RULES = {"steady": SteadyRules(), "paper": PaperRules()}
SERVICES = ("deterministic", "exponential")
_CHANGE = re.compile(r"(\d+),(\d+(?:\.\d+)?)@(\d+)")


@dataclass(frozen=True)
class Settings:
    """All that `steelyard simulate` can be told; the flags say what each of them means.

    >>> Settings(scheme="cg", fast=3, times=5).configuration().cluster_name
    '{3,5}'
    >>> Settings(load=1.2)
    Traceback (most recent call last):
    ...
    ValueError: load must be at most 1, or queues grow for ever, unless overload is said; got 1.2
    """

    dataset: str = "wp"
    fraction: float = 0.05
    skew: float | None = None
    drift: int | None = None
    input: str | None = None
    format: str | None = None
    key: str | None = None
    time: str | None = None
    on_malformed: OnMalformed = "stop"
    scheme: str = "cg"
    epsilon: float | None = None
    virtual_workers: int = 0
    rules: str = "steady"
    workers: int = 10
    fast: int = 0
    times: float = 1.0
    speeds: tuple[float, ...] = ()
    """One for each worker, instead of `workers`, `fast` and `times`; only their ratios count."""
    then: tuple[str, ...] = ()
    load: float = 0.8
    overload: bool = False
    sources: int = 1
    slots: int = 0
    quiet: int = 0
    """Slots at the start without reports."""
    period: int = 0
    service: str = "deterministic"
    seed: int = 0

    def __post_init__(self) -> None:
        require_between("load", self.load, above=0)
        if self.load > 1 and not self.overload:
            raise ValueError(
                "load must be at most 1, or queues grow for ever, unless overload is said; "
                f"got {self.load}"
            )
        require_whole("slots", self.slots, least=0)
        require_whole("quiet", self.quiet, least=0)
        require_whole("period", self.period, least=0)
        require_whole("sources", self.sources, least=1)
        require_whole("virtual_workers", self.virtual_workers, least=0)
        _require_one_of("scheme", self.scheme, SCHEMES)
        _require_one_of("rules", self.rules, RULES)
        _require_one_of("service", self.service, SERVICES)
        if (self.input is None) != (self.format is None):
            raise ValueError("input and format belong together: give both, or none")
        # What these refuse is better known before a long stream is made.
        self._cluster(rate=1.0)
        self._grouping()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Settings by name, as they come from a file or from flags.

        >>> Settings.of({"worker": 3})
        Traceback (most recent call last):
        ...
        ValueError: there is no setting 'worker'; the settings are: dataset, fraction, ...
        """
        kinds = {field.name: str(field.type) for field in fields(cls)}
        for name, value in given.items():
            if name not in kinds:
                known = ", ".join(kinds)
                raise ValueError(f"there is no setting {name!r}; the settings are: {known}")
            _require_kind(name, value, kinds[name])
        return cls(**{name: _as_tuple(value) for name, value in given.items()})

    @staticmethod
    def read(path: Path) -> dict[str, Any]:
        """The settings in a TOML file, by name."""
        try:
            return tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise ValueError(f"{str(path)!r} cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{str(path)!r} is not TOML: {error}") from error

    def configuration(self) -> Configuration:
        """The simulation that the settings describe."""
        stream = self._stream()
        slots = self.slots or max(1, min(1440, stream.messages // 4000))
        slot = stream.seconds / slots
        changes = "".join(f" {{{change.split('@')[0]}}}" for change in self.then)
        return Configuration(
            "simulate",
            scheme=self.scheme,
            stream=stream,
            cluster=self._cluster(stream.messages / stream.seconds),
            grouping=self._grouping(),
            cluster_name=self._cluster_name + changes,
            sources=self.sources,
            slot=slot,
            tick=slot / max(1, round(300 / slots)),
            period=slot * self.period if self.period else None,
            quiet=slot * self.quiet,
            service=Exponential(self.seed) if self.service == "exponential" else None,
            overload=self.overload,
            measure=series,
            repetition=self.seed,
        )

    @property
    def _cluster_name(self) -> str:
        if self.speeds:
            return ":".join(f"{speed:g}" for speed in self.speeds[:8])
        return machines(self.fast, self.times) if self.fast else "equal"

    def _stream(self) -> Source:
        if self.input is not None and self.format is not None:
            return FileStream.of(
                self.input,
                self.format,
                key=self.key,
                time=self.time,
                on_malformed=self.on_malformed,
            )
        return datasets.named(
            self.dataset,
            fraction=self.fraction,
            skew=self.skew,
            drift=self.drift,
            seed=self.seed,
        )

    def _cluster(self, rate: float) -> Cluster:
        total = rate / self.load
        if self.speeds:
            Cluster(self.speeds)  # refuses a speed of 0, and text
            whole = sum(self.speeds)
            cluster = Cluster(tuple(speed / whole * total for speed in self.speeds))
        else:
            cluster = Cluster.machines(self.workers, fast=self.fast, times=self.times, total=total)
        for change in self.then:
            found = _CHANGE.fullmatch(str(change).replace(" ", ""))
            if not found:
                raise ValueError(
                    f"then must be written as fast,times@message, as in 5,4@6000000; got {change!r}"
                )
            fast, times, message = found.groups()
            cluster = cluster.then(fast=int(fast), times=float(times), at_message=int(message))
        return cluster

    def _grouping(self) -> Grouping:
        settings: dict[str, Any] = {} if self.epsilon is None else {"epsilon": self.epsilon}
        name = "porc" if self.scheme == "cg" else self.scheme
        scheme = Plans(**settings) if name == "plans" else schemes.named(name, **settings)
        virtual = self.virtual_workers or (100 if self.scheme == "cg" else 0)
        return ConsistentGrouping(scheme, virtual, RULES[self.rules]) if virtual else Direct(scheme)


def figure_of(configuration: Configuration) -> Experiment:
    """How to draw one simulation: what the paper plots over time, and more."""
    panels = (
        ("queue_length", "messages waiting", True),
        ("latency_p99", "p99 latency, s", True),
        ("utilisation_max", "utilisation of the busiest", False),
        ("queue_length_max_min", "queue length, max - min", True),
        ("latency_max_min", "latency, max - min, s", True),
        ("utilisation_max_min", "utilisation, max - min", False),
    )
    return Experiment(
        name="simulate",
        title=f"{configuration.scheme} on {configuration.cluster.workers:,} workers "
        f"({configuration.cluster_name}), {configuration.stream.name}",
        said="",
        configurations=lambda _: [configuration],
        panels=tuple(
            Panel(metric, "time", label, "hours", log_y=log_y) for metric, label, log_y in panels
        ),
        claims=lambda _: [],
    )


def _require_one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")


def _require_kind(name: str, value: object, kind: str) -> None:
    """Refuse text where a number is wanted, and the like; ranges are checked elsewhere."""
    if "tuple" in kind:
        wanted, fits = "a list", isinstance(value, list | tuple)
    elif "bool" in kind:
        wanted, fits = "true or false", isinstance(value, bool)
    elif "float" in kind:
        wanted, fits = "a number", isinstance(value, int | float) and not isinstance(value, bool)
    elif "int" in kind:
        wanted, fits = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    else:
        wanted, fits = "text", isinstance(value, str)
    if not fits:
        raise ValueError(f"{name} must be {wanted}, got {value!r}")


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
