"""What is run in a deployment experiment, checked before any work starts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steelyard.deployment.deployed_strategies import STRATEGIES, DeployedStrategy
from steelyard.validation import require_between, require_whole

SOURCES = 8
"""Partitions of a topic."""

CHANGE = 5
"""Slots before other workers become slow, where they do."""


@dataclass(frozen=True)
class GridSettings:
    """A cluster, the words that it counts, and how thoroughly it is measured."""

    workers: int = 24
    delays: Sequence[float] = (0.1, 0.3, 1.0)
    """Milliseconds that a message takes at a worker that is not slow."""
    strategies: Sequence[DeployedStrategy] = STRATEGIES
    messages: int = 6_000_000
    """In a topic: no run takes more."""
    seconds: float = 25.0
    """So long a micro-batch at the longest delay should take, about; a third of it at others."""
    repetitions: int = 3
    """Each with other slow workers."""
    choices: int = 5
    """Repetitions at the longest delay, where it is compared most closely."""
    homogeneous: bool = True
    thorough: bool = True
    """Executors of their own too, and latencies and changes of all strategies that are compared."""
    speed: float = 0.3
    """Of a slow worker."""

    def __post_init__(self) -> None:
        require_whole("workers", self.workers, least=2, most=128)
        require_whole("messages", self.messages, least=1000)
        require_whole("repetitions", self.repetitions, least=1)
        require_between("seconds", self.seconds, above=0)
        require_between("speed", self.speed, above=0, most=1)
        for name in ("delays", "strategies"):
            if not getattr(self, name):
                raise ValueError(f"{name}: at least one is needed")
        for delay in self.delays:
            require_between("delays", delay, above=0)
        if len(set(self.strategies)) < len(self.strategies):
            raise ValueError("schemes: each only once")

    def keep_in(self, folder: Path) -> None:
        """Take a folder for outcomes; refuse one that holds those of runs that are not like these.

        Delays, strategies and repetitions may be others: they are told apart in the table.
        """
        path = folder / "setting.json"
        own = {name: getattr(self, name) for name in ("workers", "messages", "seconds", "speed")}
        kept = json.loads(path.read_text("utf-8")) if path.exists() else own
        others = [
            f"{name} {kept[name]:g}, not {own[name]:g}" for name in own if kept[name] != own[name]
        ]
        if others:
            raise ValueError(
                f"out: {str(folder)!r} holds runs of another setting ({'; '.join(others)}): "
                "name another folder, or use that setting again"
            )
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(own), "utf-8")

    @property
    def longest(self) -> float:
        """The longest delay."""
        return max(self.delays)

    def length(self, delay: float) -> float:
        """Seconds of a micro-batch, if the topic has enough messages for it."""
        fast = self.workers - self.slow * (1 - self.speed)
        wanted = self.seconds if delay == self.longest else self.seconds / 3
        return min(wanted, self.messages * delay / 1000 / fast)

    @property
    def executors(self) -> int:
        """As many, up to eight, as have an equal number of workers each; one cannot be slow."""
        return max(parts for parts in range(1, 9) if self.workers % parts == 0)

    @property
    def slow(self) -> int:
        """A quarter of the workers."""
        return max(1, self.workers // 4)

    def speeds(self, seed: int, *, hetero: bool = True) -> tuple[float, ...]:
        """Of all workers; who is slow is drawn.

        >>> GridSettings(workers=8).speeds(seed=1).count(0.3)
        2
        """
        speeds = np.ones(self.workers)
        if hetero:
            slow = np.random.default_rng(seed).choice(self.workers, self.slow, replace=False)
            speeds[slow] = self.speed
        return tuple(speeds.tolist())
