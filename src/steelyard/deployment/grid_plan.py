"""Plan the runs of a deployment experiment.

Settings and names of data sets enter; runs leave, in the order in which they run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.deployment.deployed_strategies import KEY_GROUPING, Coverage, DeployedStrategy
from steelyard.deployment.grid_settings import GridSettings
from steelyard.deployment.run_results import RunResult


@dataclass(frozen=True)
class GridRun:
    """One grouping strategy on one cluster, at one delay."""

    strategy: DeployedStrategy
    hetero: str
    """The kind of cluster, as in results.csv."""
    seed: int
    """Seed of the random choice of slow workers."""
    delay: float
    """Service time of a message, in milliseconds."""
    data: str = "tw"
    """Name of the data set."""
    latency: bool = False
    """Whether latency is measured, not throughput."""

    @property
    def empty_result(self) -> RunResult:
        """The result before anything is measured."""
        return RunResult(
            self.strategy.name,
            self.strategy.placement_name,
            self.delay,
            self.hetero,
            self.seed,
            data=self.data,
            offered=0.0 if self.latency else None,
        )


def planned(setting: GridSettings, data: Sequence[str]) -> list[GridRun]:
    """List all runs in the order in which they run, the most informative first.

    Each repetition with slow workers draws other slow workers. Strategies with full coverage run
    with more draws, and their latencies are measured in every repetition. Workers of equal speed
    need no draw, so their short delays run once.
    """
    longest, shorter = setting.longest, sorted(set(setting.delays) - {setting.longest})
    closely = [s for s in setting.strategies if s.coverage >= Coverage.CLOSE]
    fully = [s for s in setting.strategies if s.coverage == Coverage.FULL]
    thorough = setting.thorough
    runs = []
    for seed in range(setting.choices):
        drawn = setting.strategies if seed < setting.repetitions else fully
        runs += [GridRun(strategy, "sleep", seed, longest) for strategy in drawn]
    equal_speed_seeds = range(setting.repetitions if setting.homogeneous else 0)
    runs += [
        GridRun(strategy, "no", seed, longest)
        for seed in equal_speed_seeds[:1]
        for strategy in setting.strategies
    ]
    has_load = KEY_GROUPING in setting.strategies
    for seed in range(setting.repetitions if has_load else 0):
        measured = setting.strategies if seed == 0 and thorough else fully
        runs += [GridRun(strategy, "sleep", seed, longest, latency=True) for strategy in measured]
    changing = fully if thorough else [s for s in fully if s.is_delegated]
    runs += [GridRun(strategy, "changing", 0, longest) for strategy in changing]
    for name in data:
        if name != "tw":
            runs += [GridRun(strategy, "sleep", 0, longest, data=name) for strategy in fully]
    if thorough and setting.executors > 1:
        runs += [GridRun(strategy, "executors", 0, longest) for strategy in closely]
    runs += [
        GridRun(strategy, "no", seed, longest)
        for seed in equal_speed_seeds[1:]
        for strategy in closely
    ]
    for seed in range(setting.repetitions):
        for delay in shorter:
            repeated = setting.strategies if seed == 0 else fully
            runs += [GridRun(strategy, "sleep", seed, delay) for strategy in repeated]
            if setting.homogeneous and seed == 0:
                runs += [GridRun(strategy, "no", seed, delay) for strategy in closely]
    for delay in shorter if has_load else []:
        runs += [GridRun(strategy, "sleep", 0, delay, latency=True) for strategy in fully]
    return runs
