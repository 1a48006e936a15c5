"""The settings of a deployment experiment, checked before any work starts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steelyard.deployment.deployed_strategies import STRATEGIES, DeployedStrategy
from steelyard.validation import require_between, require_whole

SOURCES = 8
"""Partitions of a topic, each read by one source."""

CHANGE = 5
"""Slots before other workers become slow, in runs with changing speeds."""


@dataclass(frozen=True)
class GridSettings:
    """A cluster, the words that it counts, and the number of runs."""

    workers: int = 24
    delays: Sequence[float] = (0.1, 0.3, 1.0)
    """Service times of a message on a worker of speed 1, in milliseconds."""
    strategies: Sequence[DeployedStrategy] = STRATEGIES
    messages: int = 6_000_000
    """Messages in a topic, which limits every run."""
    seconds: float = 25.0
    """Approximate length of a micro-batch at the longest delay; a third of it at other delays."""
    repetitions: int = 3
    """Runs of a strategy, each with other slow workers."""
    choices: int = 5
    """Repetitions at the longest delay, for strategies with full coverage."""
    homogeneous: bool = True
    """Whether to run clusters with workers of equal speed too."""
    thorough: bool = True
    """Whether to run paused executors too, and to measure more latencies and changes."""
    speed: float = 0.3
    """Speed of a slow worker; the other workers have 1."""

    def __post_init__(self) -> None:
        require_whole("workers", self.workers, least=2, most=128)
        require_whole("messages", self.messages, least=1000)
        require_whole("repetitions", self.repetitions, least=1)
        require_between("seconds", self.seconds, above=0)
        require_between("speed", self.speed, above=0, most=1)
        for name in ("delays", "strategies"):
            if not getattr(self, name):
                raise ValueError(f"{name} must have at least one value")
        for delay in self.delays:
            require_between("delays", delay, above=0)
        if len(set(self.strategies)) < len(self.strategies):
            names = ", ".join(strategy.name for strategy in self.strategies)
            raise ValueError(f"schemes must not repeat a name, got {names}")

    def keep_in(self, folder: Path) -> None:
        """Use a folder for results; refuse one with results of other settings.

        Results of other delays, strategies and repetitions may share the folder, because the table
        has columns for them.
        """
        path = folder / "setting.json"
        own = {name: getattr(self, name) for name in ("workers", "messages", "seconds", "speed")}
        kept = json.loads(path.read_text("utf-8")) if path.exists() else own
        others = [
            f"{name} {kept[name]:g}, not {own[name]:g}" for name in own if kept[name] != own[name]
        ]
        if others:
            raise ValueError(
                f"out: {str(folder)!r} has runs with other settings ({'; '.join(others)}): "
                "name another folder, or use the same settings"
            )
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(own), "utf-8")

    @property
    def longest(self) -> float:
        """The longest delay."""
        return max(self.delays)

    def length(self, delay: float) -> float:
        """Return the seconds of a micro-batch, limited by the messages of the topic."""
        fast = self.workers - self.slow * (1 - self.speed)
        wanted = self.seconds if delay == self.longest else self.seconds / 3
        return min(wanted, self.messages * delay / 1000 / fast)

    @property
    def executors(self) -> int:
        """The number of executors: the largest divisor of the number of workers, at most eight."""
        return max(parts for parts in range(1, 9) if self.workers % parts == 0)

    @property
    def slow(self) -> int:
        """The number of slow workers: a quarter of all."""
        return max(1, self.workers // 4)

    def speeds(self, seed: int, *, hetero: bool = True) -> tuple[float, ...]:
        """Return the speeds of all workers, of which a random quarter is slow.

        >>> GridSettings(workers=8).speeds(seed=1).count(0.3)
        2
        """
        speeds = np.ones(self.workers)
        if hetero:
            slow = np.random.default_rng(seed).choice(self.workers, self.slow, replace=False)
            speeds[slow] = self.speed
        return tuple(speeds.tolist())
