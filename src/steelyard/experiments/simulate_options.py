"""The options of one simulation, from the command line or from a file.

Options enter by name and are checked; a configuration leaves.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from steelyard import datasets, schemes
from steelyard.datasets import Dataset
from steelyard.datasets.loading import OnMalformed, format_of
from steelyard.delegation import PaperRules, SteadyRules
from steelyard.experiments.configuration import Configuration, series
from steelyard.experiments.input_streams import FileStream, InputStream
from steelyard.experiments.paper_setup import machines
from steelyard.schemes.registration import RESERVED
from steelyard.simulator import (
    Cluster,
    ConsistentGrouping,
    Direct,
    Exponential,
    Grouping,
    Plans,
    SimulationSettings,
)
from steelyard.validation import require_between, require_whole

RULES = {"steady": SteadyRules(), "paper": PaperRules()}
SERVICES = ("deterministic", "exponential")
_CHANGE = re.compile(r"(\d+),(\d+(?:\.\d+)?)@(\d+)")


def scheme_names() -> list[str]:
    """Return the names of all groupings that can be simulated, with registered schemes."""
    return [*RESERVED, *schemes.names()]


@dataclass(frozen=True)
class DatasetOptions:
    """The data set, and the fraction of it to simulate."""

    dataset: str = "wp"
    fraction: float = 0.05
    skew: float | None = None
    drift: int | None = None

    def stream(self, seed: int) -> Dataset:
        """Return the data set."""
        return datasets.named(
            self.dataset, fraction=self.fraction, skew=self.skew, drift=self.drift, seed=seed
        )


@dataclass(frozen=True)
class FileOptions:
    """Files of messages instead of a data set."""

    input: str | None = None
    format: str | None = None
    key: str | None = None
    time: str | None = None
    on_malformed: OnMalformed = "stop"

    def __post_init__(self) -> None:
        for name in ("format", "key", "time"):
            if self.input is None and getattr(self, name) is not None:
                raise ValueError(f"{name} has no effect without input: pass the files as input")

    def stream(self, most: int | None = None) -> FileStream | None:
        """Return the first messages of the files; None without files.

        The names of the files say the format, unless it is given.
        """
        if self.input is None:
            return None
        return FileStream.of(
            self.input,
            self.format or format_of(self.input),
            key=self.key,
            time=self.time,
            on_malformed=self.on_malformed,
            most=most,
        )


@dataclass(frozen=True)
class GroupingOptions:
    """The rule by which sources choose the worker of a message."""

    scheme: str = "cg"
    epsilon: float | None = None
    virtual_workers: int = 0
    rules: str = "steady"

    def __post_init__(self) -> None:
        require_whole("virtual_workers", self.virtual_workers, least=0)
        _require_one_of("scheme", self.scheme, scheme_names())
        _require_one_of("rules", self.rules, RULES)
        self.grouping()  # raises an error for options that contradict each other

    def grouping(self) -> Grouping:
        """Return the grouping."""
        settings: dict[str, Any] = {} if self.epsilon is None else {"epsilon": self.epsilon}
        name = "porc" if self.scheme == "cg" else self.scheme
        scheme = Plans(**settings) if name == "plans" else schemes.named(name, **settings)
        virtual = self.virtual_workers or (100 if self.scheme == "cg" else 0)
        return ConsistentGrouping(scheme, virtual, RULES[self.rules]) if virtual else Direct(scheme)


@dataclass(frozen=True)
class ClusterOptions:
    """The machines, and the load of the stream as a fraction of their capacity.

    >>> ClusterOptions(fast=3, times=5).name
    '{3,5}'
    >>> ClusterOptions(load=1.2)
    Traceback (most recent call last):
    ...
    ValueError: load must be at most 1, got 1.2; set overload to simulate queues that grow
    """

    workers: int = 10
    fast: int = 0
    times: float = 1.0
    speeds: tuple[float, ...] = ()
    """One speed for each worker, in place of `workers`, `fast` and `times`; only ratios matter."""
    then: tuple[str, ...] = ()
    load: float = 0.8
    overload: bool = False

    def __post_init__(self) -> None:
        require_between("load", self.load, above=0)
        if self.load > 1 and not self.overload:
            raise ValueError(
                f"load must be at most 1, got {self.load}; "
                "set overload to simulate queues that grow"
            )
        self.cluster(rate=1.0)  # raises errors before a long stream is generated

    @property
    def name(self) -> str:
        """The name of the cluster in results: {y,z} or its speeds, and its changes."""
        changes = "".join(f" {{{change.split('@')[0]}}}" for change in self.then)
        if self.speeds:
            return ":".join(f"{speed:g}" for speed in self.speeds[:8]) + changes
        return (machines(self.fast, self.times) if self.fast else "equal") + changes

    def cluster(self, rate: float) -> Cluster:
        """Return the cluster for a stream of this rate in messages per second."""
        cluster = self._initial_cluster(rate / self.load)
        for change in self.then:
            found = _CHANGE.fullmatch(str(change).replace(" ", ""))
            if not found:
                raise ValueError(
                    f"then must be written as fast,times@message, such as 5,4@6000000; "
                    f"got {change!r}"
                )
            fast, times, message = found.groups()
            cluster = cluster.then(fast=int(fast), times=float(times), at_message=int(message))
        return cluster

    def _initial_cluster(self, total: float) -> Cluster:
        if not self.speeds:
            return Cluster.machines(self.workers, fast=self.fast, times=self.times, total=total)
        Cluster(self.speeds)  # raises an error for a speed of 0 and for text
        whole = sum(self.speeds)
        return Cluster(tuple(speed / whole * total for speed in self.speeds))


@dataclass(frozen=True)
class SlotOptions:
    """Slots, sources and service times; `quiet` and `period` are numbers of slots."""

    sources: int = 1
    slots: int = 0
    quiet: int = 0
    """The number of slots without reports at the start."""
    period: int = 0
    service: str = "deterministic"
    seed: int = 0

    def __post_init__(self) -> None:
        require_whole("slots", self.slots, least=0)
        require_whole("quiet", self.quiet, least=0)
        require_whole("period", self.period, least=0)
        require_whole("sources", self.sources, least=1)
        _require_one_of("service", self.service, SERVICES)

    def settings(self, stream: InputStream, *, overload: bool) -> SimulationSettings:
        """Return the settings of a simulation of this stream."""
        slots = self.slots or max(1, min(1440, stream.messages // 4000))
        slot = stream.seconds / slots
        return SimulationSettings(
            sources=self.sources,
            slot=slot,
            tick=slot / max(1, round(300 / slots)),
            period=slot * self.period if self.period else None,
            quiet=slot * self.quiet,
            service=Exponential(self.seed) if self.service == "exponential" else None,
            overload=overload,
            seed=self.seed,
        )


@dataclass(frozen=True)
class SimulateOptions:
    """All options of `steelyard simulate`; `steelyard simulate --help` describes them.

    >>> SimulateOptions.of({"scheme": "cg", "fast": 3, "times": 5}).configuration().cluster_name
    '{3,5}'
    """

    dataset: DatasetOptions = field(default_factory=DatasetOptions)
    file: FileOptions = field(default_factory=FileOptions)
    grouping: GroupingOptions = field(default_factory=GroupingOptions)
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    slots: SlotOptions = field(default_factory=SlotOptions)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Create the options from names and values of a file or of the command line.

        >>> SimulateOptions.of({"worker": 3})
        Traceback (most recent call last):
        ...
        ValueError: there is no setting 'worker'; the settings are: dataset, fraction, ...
        """
        kinds = {
            option.name: str(option.type) for part in _PARTS.values() for option in fields(part)
        }
        for name, value in given.items():
            if name not in kinds:
                known = ", ".join(kinds)
                raise ValueError(f"there is no setting {name!r}; the settings are: {known}")
            _require_kind(name, value, kinds[name])
        return cls(**{name: _part(part, given) for name, part in _PARTS.items()})

    @staticmethod
    def read(path: Path) -> dict[str, Any]:
        """Return the options in a TOML file by name, which may be written with - or with _."""
        try:
            found = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise ValueError(f"{str(path)!r} cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{str(path)!r} is not TOML: {error}") from error
        options = {name.replace("-", "_"): value for name, value in found.items()}
        if len(options) < len(found):
            raise ValueError(f"{str(path)!r} has an option twice, with - and with _ in its name")
        return options

    def configuration(self) -> Configuration:
        """Return the configuration of the simulation."""
        stream = self.file.stream() or self.dataset.stream(self.slots.seed)
        return Configuration(
            "simulate",
            scheme=self.grouping.scheme,
            stream=stream,
            cluster=self.cluster.cluster(stream.messages / stream.seconds),
            grouping=self.grouping.grouping(),
            cluster_name=self.cluster.name,
            settings=self.slots.settings(stream, overload=self.cluster.overload),
            measure=series,
        )


_PARTS: dict[str, type[Any]] = {
    "dataset": DatasetOptions,
    "file": FileOptions,
    "grouping": GroupingOptions,
    "cluster": ClusterOptions,
    "slots": SlotOptions,
}
"""The parts of `SimulateOptions`; their fields, in this order, are the options."""


def _part(part: type[Any], given: Mapping[str, Any]) -> Any:
    """Return the options of one part; options that are not given have their defaults."""
    names = {option.name for option in fields(part)}
    return part(**{name: _as_tuple(value) for name, value in given.items() if name in names})


def _require_one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")


def _require_kind(name: str, value: object, kind: str) -> None:
    """Raise a ValueError if the value has the wrong type; ranges are checked elsewhere."""
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
