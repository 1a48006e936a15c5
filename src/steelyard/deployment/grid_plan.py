"""Plan the runs of a deployment experiment.

Settings and names of data sets enter; runs leave, in the order in which they are made.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.deployment import word_grouping
from steelyard.deployment.grid_settings import GridSettings
from steelyard.deployment.run_results import RunResult

_COMPARED_IN_DETAIL = ("kg", "cg-pull", "cg-delegated")
"""Strategies that also run with changing machines, on other data and at most seeds."""

_COMPARED_CLOSELY = ("sg", "pkg", *_COMPARED_IN_DETAIL)
"""Strategies that also run on paused executors, and repeatedly where workers are alike."""


@dataclass(frozen=True)
class GridRun:
    """One grouping strategy on one cluster, at one delay."""

    strategy: str
    hetero: str
    seed: int
    delay: float
    data: str = "tw"
    latency: bool = False

    @property
    def empty_result(self) -> RunResult:
        """The result before anything is measured."""
        return RunResult(
            self.strategy,
            word_grouping.placement(self.strategy),
            self.delay,
            self.hetero,
            self.seed,
            data=self.data,
            offered=0.0 if self.latency else None,
        )


def planned(setting: GridSettings, data: Sequence[str]) -> list[GridRun]:
    """List all runs in the order in which they are made, the most informative first.

    Strategies that are compared most closely are drawn slow workers for most often, and have their
    latencies measured in every repetition at the longest delay, others once; where workers are
    alike there is nothing to draw, so short delays are run once.
    """
    longest, shorter = setting.longest, sorted(set(setting.delays) - {setting.longest})
    closely = [strategy for strategy in setting.strategies if strategy in _COMPARED_CLOSELY]
    ours = [strategy for strategy in setting.strategies if strategy in _COMPARED_IN_DETAIL]
    thorough = setting.thorough
    runs = []
    for seed in range(setting.choices):
        drawn = setting.strategies if seed < setting.repetitions else ours
        runs += [GridRun(strategy, "sleep", seed, longest) for strategy in drawn]
    alike = range(setting.repetitions if setting.homogeneous else 0)
    runs += [
        GridRun(strategy, "no", seed, longest)
        for seed in alike[:1]
        for strategy in setting.strategies
    ]
    has_load = "kg" in setting.strategies
    for seed in range(setting.repetitions if has_load else 0):
        measured = setting.strategies if seed == 0 and thorough else ours
        runs += [GridRun(strategy, "sleep", seed, longest, latency=True) for strategy in measured]
    changing = ours if thorough else [strategy for strategy in ours if strategy == "cg-delegated"]
    runs += [GridRun(strategy, "changing", 0, longest) for strategy in changing]
    for name in data:
        if name != "tw":
            runs += [GridRun(strategy, "sleep", 0, longest, data=name) for strategy in ours]
    if thorough and setting.executors > 1:
        runs += [GridRun(strategy, "executors", 0, longest) for strategy in closely]
    runs += [GridRun(strategy, "no", seed, longest) for seed in alike[1:] for strategy in closely]
    for seed in range(setting.repetitions):
        for delay in shorter:
            repeated = setting.strategies if seed == 0 else ours
            runs += [GridRun(strategy, "sleep", seed, delay) for strategy in repeated]
            if setting.homogeneous and seed == 0:
                runs += [GridRun(strategy, "no", seed, delay) for strategy in closely]
    for delay in shorter if has_load else []:
        runs += [GridRun(strategy, "sleep", 0, delay, latency=True) for strategy in ours]
    return runs
