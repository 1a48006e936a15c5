"""All runs of a deployment experiment, one after the other, each kept when it is done.

A setting and a folder enter; the table of results leaves. Runs that the folder holds are not made
again, so that an experiment that was stopped goes on where it was.
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
"""Of what key grouping can do: what is offered where latencies are measured."""

_SETTLE, _MEASURE, _LEAST_OFFERED = 0.75, 1.0, 15.0
"""Lengths of a micro-batch, and seconds at least, at an offered rate."""

_CHANGING_SLOTS = 12
_CHANGING_SECONDS, _CHANGING_SECONDS_WITHOUT_LEARNING = 5.0, 1.5
"""Seconds of work in a slot while speeds change; without learning, a short slot shows enough."""

_MEASURED_AT_ONCE = 3
_PAUSED_SECONDS = 10.0
"""Seconds of a micro-batch on paused executors, for every strategy."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The runs of a setting, on a broker, with what they have left in a folder."""

    setting: GridSettings
    servers: str
    out: Path
    scratch: Path
    """For checkpoints, which are not kept."""
    words: dict[str, WordStream] = field(repr=False)
    watch: Callable[[GridRun, Slot], None] = lambda *_: None
    done: Callable[[GridRun], None] = lambda _: None
    _learned: dict[Path, tuple[float, int | None]] = field(default_factory=dict, repr=False)
    """By control path: the part of the limit that is expected, and slots that it took to learn."""

    def run(self, runs: Sequence[GridRun]) -> ResultTable:
        """All that are not done yet."""
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
        """All workers in this machine's one Spark."""
        with self._spark(f"local[{self.setting.workers}]") as spark:
            self._wake(spark)
            yield spark

    @contextmanager
    def _paused_executors(self) -> Iterator[SparkSession]:
        """Start separate executors; slow some of them when all have started."""
        executors = self.setting.executors
        own = self.setting.workers // executors
        all_there = {
            "spark.cores.max": str(self.setting.workers),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        }
        master = f"local-cluster[{executors},{own},1024]"
        with self._spark(master, all_there) as spark:
            self._wake(spark)  # which waits for all of them
            processes = executors_of(spark)
            if len(processes) != executors:
                raise RuntimeError(f"{executors} executors, and found {len(processes)}")
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
        }
        return session("steelyard deploy", master, more, self.scratch / "spark.log")

    def _wake(self, spark: SparkSession) -> None:
        """Let Spark start its Python processes, which takes it many seconds, on nothing."""
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
        """To saturation, after a warm-up.

        In a first micro-batch Spark makes room for state; the second one, which follows what was
        counted in the first, is measured.
        """
        words, machines = self.words[run.data], self._machines(run, run.delay)
        expected, slots_to_learn = self._warm(cluster, run)
        messages = self._affordable(words, expected * machines.limit * self._length(run), 2)
        slots = cluster.saturate(
            run.strategy, machines, words.topic, messages, 2, self._control(run)
        )
        made = self._filled(run.empty_result, machines.limit, slots, 1)
        # A strategy that learns did so in the warm-up, at the longest delay.
        has_learned_here = run.delay == self.setting.longest
        made = replace(made, converged=slots_to_learn if has_learned_here else None)
        if run.strategy.shares_machines:
            made = replace(made, used=None, imbalance=None)
        return made

    def _length(self, run: GridRun) -> float:
        length = self.setting.length(run.delay)
        return min(length, _PAUSED_SECONDS) if run.hetero == "executors" else length

    def _warm(self, cluster: MeasuredCluster, run: GridRun) -> tuple[float, int | None]:
        """Estimate the share of the limit that a strategy reaches; count the slots to learn it."""
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
            took = slots_until(warm.used) if run.strategy.is_delegated else None
            self._learned[control] = (_expected(run.strategy, warm), took)
        return self._learned[control]

    def _in_one_go(self, cluster: MeasuredCluster, run: GridRun) -> RunResult:
        """Where a new query would put workers on other executors, it learns and is measured."""
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
        """What the last slots tell, and how soon they were like that."""
        measures = Measures(slots[-measured:], limit)
        keys, size = measures.held
        return replace(
            result,
            throughput=measures.throughput,
            limit=limit,
            working=measures.working,
            copies=keys / self.words[result.data].distinct(slots[-1].messages),
            state_bytes=size,
            used=median(measures.used),
            imbalance=measures.imbalance,
            converged=slots_until(Measures(slots, limit).used),
            messages=slots[-1].messages,
        )

    def _latency(self, cluster: MeasuredCluster, run: GridRun, table: ResultTable) -> RunResult:
        """From Kafka's time of a message until it is counted, at what key grouping can just do."""
        result = run.empty_result
        by_key = table.find(replace(result, scheme=KEY_GROUPING.name, offered=None))
        if by_key is None or by_key.working is None:
            raise ValueError("latencies are measured at a part of what kg can do: add it")
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
        """Other workers become slow in the middle of a run; its slots are kept in series.csv."""
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

    # What they share.

    def _machines(self, run: GridRun, delay: float) -> Machines:
        service = delay / 1000
        if run.hetero == "executors":
            # They are as fast as their processes are let run; the limit is known all the same.
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
        """Limit the messages of a micro-batch to what the topic holds for all batches."""
        most = words.topic.messages // batches
        return max(SOURCES, min(int(messages), most) // SOURCES * SOURCES)


def _expected(strategy: DeployedStrategy, warm: Measures) -> float:
    """The part of the limit that a strategy will reach, about, to make its runs equally long."""
    if strategy.expected_share is not None:
        return strategy.expected_share
    if strategy.shares_machines:
        return min(1.0, Measures(warm.slots[-1:], warm.limit).working / warm.limit)
    return warm.used[-1]
