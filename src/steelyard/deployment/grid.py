"""Run all runs of a deployment experiment, and save each result when its run ends.

Settings and a folder enter; the table of results leaves. A run whose result is in the folder is
skipped, so an interrupted experiment can be resumed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from steelyard.control.history import Slot
from steelyard.deployment.broker import connector
from steelyard.deployment.deployed_strategies import KEY_GROUPING, DeployedStrategy
from steelyard.deployment.emulated_machines import (
    ByPartition,
    ByProcess,
    ChangingMachines,
    MachineOfTask,
    Machines,
)
from steelyard.deployment.grid_plan import GridRun
from steelyard.deployment.grid_settings import CHANGE, SOURCES, GridSettings
from steelyard.deployment.measured_cluster import MeasuredCluster
from steelyard.deployment.paused_executors import executors_of, slowed
from steelyard.deployment.run_results import (
    Measures,
    ResultTable,
    RunResult,
    SlotSeries,
    slots_until,
)
from steelyard.deployment.word_streams import WordStream
from steelyard.spark.session import STATE_IN_ROCKSDB, session

_LOAD = 0.8
"""Offered rate for latencies, as a fraction of key grouping's throughput while workers work."""

_LEAST_OFFERED = 15.0
"""Shortest unit of time at an offered rate, in seconds; the unit is the length of a micro-batch."""
_SETTLE, _MEASURE = 0.75, 1.0
"""Time to settle and time to measure at an offered rate, in these units."""

_CHANGING_SLOTS = 12
_CHANGING_SECONDS, _CHANGING_SECONDS_WITHOUT_LEARNING = 5.0, 1.5
"""Seconds of work in a slot while speeds change; without learning, a short slot shows enough."""

_MEASURED_AT_ONCE = 3
_PAUSED_SECONDS = 10.0
"""Longest micro-batch on paused executors, in seconds."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Runs on a Kafka broker, with a folder for their results."""

    setting: GridSettings
    servers: str
    out: Path
    scratch: Path
    """Folder for checkpoints, which are not kept."""
    words: dict[str, WordStream] = field(repr=False)
    watch: Callable[[GridRun, Slot], None] = lambda *_: None
    done: Callable[[GridRun], None] = lambda _: None
    spark_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of Spark that the user gives; they may hold secrets."""
    _learned: dict[Path, tuple[float, int | None]] = field(default_factory=dict, repr=False)
    """By control path: the expected efficiency, and the slots until convergence."""

    def run(self, runs: Sequence[GridRun]) -> ResultTable:
        """Run all runs that have no result yet."""
        table = ResultTable(self.out)
        missing = []
        for run in runs:
            if table.find(run.empty_result):
                self.done(run)
            else:
                missing.append(run)
        for is_paused, some in groupby(missing, lambda run: run.hetero == "executors"):
            with self._paused_executors() if is_paused else self._warm_local_session() as spark:
                for run in some:
                    self._one(spark, run, table)
                    self.done(run)
        return table

    @property
    def _slow_executors(self) -> int:
        return max(1, self.setting.executors // 4)

    @contextmanager
    def _warm_local_session(self) -> Iterator[SparkSession]:
        """Start Spark with all workers in one process, and warm it up."""
        with self._spark(f"local[{self.setting.workers}]") as spark:
            self._wake(spark)
            yield spark

    @contextmanager
    def _paused_executors(self) -> Iterator[SparkSession]:
        """Start separate executors, and slow some of them after all have started."""
        executors = self.setting.executors
        own = self.setting.workers // executors
        all_there = {
            "spark.cores.max": str(self.setting.workers),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        }
        master = f"local-cluster[{executors},{own},1024]"
        with self._spark(master, all_there) as spark:
            self._wake(spark)  # waits for all executors
            processes = executors_of(spark)
            if len(processes) != executors:
                raise RuntimeError(f"expected {executors} executors, found {len(processes)}")
            with slowed(processes[: self._slow_executors], self.setting.speed):
                yield spark

    def _spark(
        self, master: str, own: Mapping[str, str] | None = None
    ) -> AbstractContextManager[SparkSession]:
        more = {
            "spark.sql.shuffle.partitions": str(self.setting.workers),
            "spark.driver.memory": "4g",
            "spark.locality.wait": "60s",
            **STATE_IN_ROCKSDB,
            **connector(),
            **(own or {}),
            **self.spark_settings,
        }
        return session("steelyard deploy", master, more, self.scratch / "spark.log")

    def _wake(self, spark: SparkSession) -> None:
        """Start Spark's Python processes, which takes many seconds, with hardly any work."""
        machines = Machines(1e-9, [1.0] * self.setting.workers)
        words = self.words["tw"].topic
        cluster = MeasuredCluster(spark, self.setting.workers, self.scratch)
        few = min(words.messages // 2, 100 * self.setting.workers)
        cluster.saturate(KEY_GROUPING, machines, words, few, 2, self.scratch / "none")

    def _one(self, spark: SparkSession, run: GridRun, table: ResultTable) -> None:
        cluster = MeasuredCluster(
            spark, self.setting.workers, self.scratch, lambda slot: self.watch(run, slot)
        )
        if run.latency:
            table.add(self._latency(cluster, run, table))
        elif run.hetero == "changing":
            table.add(self._changing(cluster, run))
        elif run.strategy.is_delegated and run.hetero == "executors":
            table.add(self._in_one_go(cluster, run))
        else:
            table.add(self._throughput(cluster, run))

    # The kinds of runs.

    def _throughput(self, cluster: MeasuredCluster, run: GridRun) -> RunResult:
        """Measure the throughput of back-to-back micro-batches, after a warm-up.

        In the first micro-batch Spark allocates state. The second one, which follows the plan from
        the counts of the first, is measured.
        """
        words, machines = self.words[run.data], self._machines(run, run.delay)
        expected, slots_to_learn = self._warm(cluster, run)
        messages = self._affordable(words, expected * machines.limit * self._length(run), 2)
        slots = cluster.saturate(
            run.strategy, machines, words.topic, messages, 2, self._control(run)
        )
        made = self._filled(run.empty_result, machines.limit, slots, 1)
        # The warm-up, in which a strategy learns, runs at the longest delay.
        has_learned_here = run.delay == self.setting.longest
        made = replace(made, converged=slots_to_learn if has_learned_here else None)
        if run.strategy.shares_machines:
            made = replace(made, used=None, imbalance=None)
        return made

    def _length(self, run: GridRun) -> float:
        length = self.setting.length(run.delay)
        return min(length, _PAUSED_SECONDS) if run.hetero == "executors" else length

    def _warm(self, cluster: MeasuredCluster, run: GridRun) -> tuple[float, int | None]:
        """Estimate the efficiency of a strategy; count the slots to learn it."""
        control = self._control(run)
        if control not in self._learned:
            machines, words = self._machines(run, self.setting.longest), self.words[run.data]
            warm_up = run.strategy.warm_up
            batches = warm_up.batches
            messages = self._affordable(words, machines.limit * warm_up.seconds, batches)
            slots = cluster.saturate(
                run.strategy, machines, words.topic, messages, batches, control
            )
            warm = Measures(slots, machines.limit)
            took = slots_until(warm.efficiency) if run.strategy.is_delegated else None
            self._learned[control] = (_expected(run.strategy, warm), took)
        return self._learned[control]

    def _in_one_go(self, cluster: MeasuredCluster, run: GridRun) -> RunResult:
        """Learn and measure in one query, because a new query would move workers."""
        result = run.empty_result
        machines, words = self._machines(run, result.delay), self.words[run.data]
        batches = run.strategy.warm_up.batches + _MEASURED_AT_ONCE
        messages = self._affordable(words, machines.limit * self._length(run), batches)
        slots = cluster.saturate(
            run.strategy, machines, words.topic, messages, batches, self._control(run)
        )
        return self._filled(result, machines.limit, slots, _MEASURED_AT_ONCE)

    def _filled(
        self, result: RunResult, limit: float, slots: Sequence[Slot], measured: int
    ) -> RunResult:
        """Fill in the measures of the last slots, and the slots until convergence."""
        measures = Measures(slots[-measured:], limit)
        keys, size = measures.held
        return replace(
            result,
            throughput=measures.throughput,
            limit=limit,
            working=measures.working,
            copies=keys / self.words[result.data].distinct(slots[-1].messages),
            state_bytes=size,
            used=median(measures.efficiency),
            imbalance=measures.imbalance,
            converged=slots_until(Measures(slots, limit).efficiency),
            messages=slots[-1].messages,
        )

    def _latency(self, cluster: MeasuredCluster, run: GridRun, table: ResultTable) -> RunResult:
        """Measure latencies from Kafka's timestamp until a message is counted.

        Messages are offered at a rate that key grouping can just process.
        """
        result = run.empty_result
        by_key = table.find(replace(result, scheme=KEY_GROUPING.name, offered=None))
        if by_key is None or by_key.working is None:
            raise ValueError(
                "schemes must include kg: latencies are measured at 80 % of its throughput"
            )
        rate = _LOAD * by_key.working
        self._warm(cluster, run)
        machines, words = self._machines(run, result.delay), self.words[run.data]
        length = max(_LEAST_OFFERED, self.setting.length(run.delay))
        seconds = (_SETTLE * length, _MEASURE * length)
        slots = cluster.offer(
            run.strategy, machines, self.servers, words.sample, rate, seconds, self._control(run)
        )
        measures = Measures(slots, machines.limit)
        return replace(
            result,
            limit=machines.limit,
            offered=rate,
            p50=measures.latency(0.5),
            p95=measures.latency(0.95),
            p99=measures.latency(0.99),
            messages=slots[-1].messages,
        )

    def _changing(self, cluster: MeasuredCluster, run: GridRun) -> RunResult:
        """Change the slow workers in the middle of a run; save its slots in series.csv."""
        result = run.empty_result
        before, after = self.setting.speeds(run.seed), self.setting.speeds(run.seed + 1000)
        machines = ChangingMachines(
            result.delay / 1000,
            before,
            self._machine_of_task(run.strategy),
            later=after,
            change=CHANGE,
        )
        words = self.words[run.data]
        learns = run.strategy.learns
        seconds = _CHANGING_SECONDS if learns else _CHANGING_SECONDS_WITHOUT_LEARNING
        messages = self._affordable(words, machines.limit * seconds, _CHANGING_SLOTS)
        slots = cluster.saturate(
            run.strategy, machines, words.topic, messages, _CHANGING_SLOTS, self._control(run)
        )
        measures = Measures(slots, machines.limit)
        SlotSeries(self.out).put(run.strategy.name, slots, machines.limit)
        return replace(
            result,
            limit=machines.limit,
            throughput=measures.throughput,
            working=measures.working,
            converged=slots_until([slot.messages / slot.working for slot in slots[CHANGE:]]),
            messages=messages,
        )

    # Parts that all runs share.

    def _machines(self, run: GridRun, delay: float) -> Machines:
        service = delay / 1000
        if run.hetero == "executors":
            # Pauses make them slow, so all have speed 1; the limit follows from the pauses.
            slow = self._slow_executors / self.setting.executors
            part = 1 - slow + slow * self.setting.speed
            return Machines(service, [1.0] * self.setting.workers, part=part, may_be_paused=True)
        speeds = self.setting.speeds(run.seed, hetero=run.hetero == "sleep")
        return Machines(service, speeds, self._machine_of_task(run.strategy))

    def _machine_of_task(self, strategy: DeployedStrategy) -> MachineOfTask:
        if not strategy.shares_machines:
            return ByPartition()
        folder = self.scratch / "machines"
        folder.mkdir(exist_ok=True)
        return ByProcess(str(folder))

    def _control(self, run: GridRun) -> Path:
        return self.scratch / f"control of {run.strategy.name} {run.hetero} {run.seed} {run.data}"

    def _affordable(self, words: WordStream, messages: float, batches: int) -> int:
        """Limit the messages of a micro-batch so that the topic has enough for all batches."""
        most = words.topic.messages // batches
        return max(SOURCES, min(int(messages), most) // SOURCES * SOURCES)


def _expected(strategy: DeployedStrategy, warm: Measures) -> float:
    """Estimate the efficiency that a strategy will reach.

    The estimate makes the runs of all strategies about equally long.
    """
    if strategy.expected_share is not None:
        return strategy.expected_share
    if strategy.shares_machines:
        return min(1.0, Measures(warm.slots[-1:], warm.limit).working / warm.limit)
    return warm.efficiency[-1]
