"""All runs of a deployment experiment, one after the other, each kept when it is done.

A setting and a folder enter; the table of outcomes leaves. Runs that the folder holds are not made
again, so that an experiment that was stopped goes on where it was.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from steelyard import datasets
from steelyard.control.history import Slot
from steelyard.deployment import strategies
from steelyard.deployment.broker import Topic, connector, fill
from steelyard.deployment.emulated_machines import Changing, Machines
from steelyard.deployment.grid_settings import CHANGE, SOURCES, GridSettings
from steelyard.deployment.measured_cluster import MeasuredCluster
from steelyard.deployment.paused_executors import executors_of, slowed
from steelyard.deployment.run_results import Measures, RunResult, SlotSeries, Table, slots_until
from steelyard.spark.session import STATE_IN_ROCKSDB, session

_LOAD = 0.8
"""Of what key grouping can do: what is offered where latencies are measured."""

_SHORT, _GLIMPSE = 5.0, 1.5
"""Seconds of work in a micro-batch that is not measured: to learn from, or only to wake up."""

_TO_LEARN = {"cg-delegated": 5, "cg-pull": 2, "kg-200": 1}
"""Short micro-batches before anything is measured; others have a glimpse."""

_SETTLE, _MEASURE, _LEAST_OFFERED = 0.75, 1.0, 15.0
"""Lengths of a micro-batch, and seconds at least, at an offered rate."""

_IN_ALL_RESPECTS = ("kg", "cg-pull", "cg-delegated")
_IN_ALL_REPETITIONS = ("sg", "pkg", *_IN_ALL_RESPECTS)
"""What is compared more closely than the others."""

_CHANGING_SLOTS = 12
_MEASURED_AT_ONCE = 3
_APART = 10.0
"""Seconds of a micro-batch on executors of their own, whoever it is."""
_CHUNK = 1 << 18


@dataclass(frozen=True)
class GridRun:
    """One way on one cluster, at one delay."""

    way: str
    hetero: str
    seed: int
    delay: float
    data: str = "tw"
    latency: bool = False

    @property
    def outcome(self) -> RunResult:
        """What it will fill in."""
        return RunResult(
            self.way,
            strategies.placement(self.way),
            self.delay,
            self.hetero,
            self.seed,
            data=self.data,
            offered=0.0 if self.latency else None,
        )


def planned(setting: GridSettings, data: Sequence[str]) -> list[GridRun]:
    """Everything, in the order in which it is run: what tells most comes first.

    Ways that are compared most closely are drawn slow workers for most often, and have their
    latencies measured in every repetition at the longest delay, others once; where workers are
    alike there is nothing to draw, so short delays are run once.
    """
    longest, shorter = setting.longest, sorted(set(setting.delays) - {setting.longest})
    closely = [way for way in setting.ways if way in _IN_ALL_REPETITIONS]
    ours = [way for way in setting.ways if way in _IN_ALL_RESPECTS]
    thorough = setting.thorough
    runs = []
    for seed in range(setting.choices):
        drawn = setting.ways if seed < setting.repetitions else ours
        runs += [GridRun(way, "sleep", seed, longest) for way in drawn]
    alike = range(setting.repetitions if setting.homogeneous else 0)
    runs += [GridRun(way, "no", seed, longest) for seed in alike[:1] for way in setting.ways]
    has_load = "kg" in setting.ways
    for seed in range(setting.repetitions if has_load else 0):
        measured = setting.ways if seed == 0 and thorough else ours
        runs += [GridRun(way, "sleep", seed, longest, latency=True) for way in measured]
    changing = ours if thorough else [way for way in ours if way == "cg-delegated"]
    runs += [GridRun(way, "changing", 0, longest) for way in changing]
    for name in data:
        if name != "tw":
            runs += [GridRun(way, "sleep", 0, longest, data=name) for way in ours]
    if thorough and setting.executors > 1:
        runs += [GridRun(way, "executors", 0, longest) for way in closely]
    runs += [GridRun(way, "no", seed, longest) for seed in alike[1:] for way in closely]
    for seed in range(setting.repetitions):
        for delay in shorter:
            repeated = setting.ways if seed == 0 else ours
            runs += [GridRun(way, "sleep", seed, delay) for way in repeated]
            if setting.homogeneous and seed == 0:
                runs += [GridRun(way, "no", seed, delay) for way in closely]
    for delay in shorter if has_load else []:
        runs += [GridRun(way, "sleep", 0, delay, latency=True) for way in ours]
    return runs


@dataclass(frozen=True, eq=False)
class Words:
    """A stream of words, as numbers and as text, and where it is in Kafka."""

    topic: Topic
    codes: NDArray[np.integer]
    sample: pa.Array
    """Some of the first, as text."""

    def distinct(self, messages: int) -> int:
        """Different words among the last so many."""
        return int(np.unique(self.codes[-messages:]).size)


def load(servers: str, name: str, messages: int, folder: Path | None) -> Words:
    """Words of a data set, sent to a topic of its own."""
    messages = messages // SOURCES * SOURCES
    if name == "tw":
        dataset = replace(datasets.named("tw"), messages=messages)
        ranks = dataset.part(0, messages).keys
        codes: NDArray[np.integer] = ranks
        texts: list[pa.Array] = [
            dataset.key_names(ranks[first : first + _CHUNK]) for first in range(0, messages, _CHUNK)
        ]
    else:
        assert folder is not None
        column = pq.read_table(folder / f"{name}.parquet")["key"].combine_chunks()
        column = column.slice(0, min(messages, len(column) // SOURCES * SOURCES))
        codes = column.dictionary_encode().indices.to_numpy()
        texts = [column]
    topic = fill(servers, name.replace("_", "-"), texts)
    return Words(topic, codes, texts[0].slice(0, _CHUNK))


@dataclass(frozen=True, eq=False)
class Grid:
    """The runs of a setting, on a broker, with what they have left in a folder."""

    setting: GridSettings
    servers: str
    out: Path
    scratch: Path
    """For checkpoints, which are not kept."""
    words: dict[str, Words] = field(repr=False)
    watch: Callable[[GridRun, Slot], None] = lambda *_: None
    done: Callable[[GridRun], None] = lambda _: None
    _learned: dict[Path, tuple[float, int | None]] = field(default_factory=dict, repr=False)
    """By control path: the part of the limit that is expected, and slots that it took to learn."""

    def run(self, runs: Sequence[GridRun]) -> Table:
        """All that are not done yet."""
        table = Table(self.out)
        missing = []
        for run in runs:
            if table.find(run.outcome):
                self.done(run)
            else:
                missing.append(run)
        for apart, some in groupby(missing, lambda run: run.hetero == "executors"):
            with self._executors_apart() if apart else self._waked_here() as spark:
                for run in some:
                    self._one(spark, run, table)
                    self.done(run)
        return table

    @property
    def _slow_executors(self) -> int:
        return max(1, self.setting.executors // 4)

    @contextmanager
    def _waked_here(self) -> Iterator[SparkSession]:
        """All workers in this machine's one Spark."""
        with self._spark(f"local[{self.setting.workers}]") as spark:
            self._wake(spark)
            yield spark

    @contextmanager
    def _executors_apart(self) -> Iterator[SparkSession]:
        """Executors of their own, of which some are slowed when they have waked up."""
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
        cluster.saturate("kg", machines, words, few, 2, self.scratch / "none")

    def _one(self, spark: SparkSession, run: GridRun, table: Table) -> None:
        cluster = MeasuredCluster(
            spark, self.setting.workers, self.scratch, lambda slot: self.watch(run, slot)
        )
        if run.latency:
            table.add(self._latency(cluster, run, table))
        elif run.hetero == "changing":
            table.add(self._changing(cluster, run))
        elif run.way == "cg-delegated" and run.hetero == "executors":
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
        slots = cluster.saturate(run.way, machines, words.topic, messages, 2, self._control(run))
        made = self._filled(run.outcome, machines.limit, slots, 1)
        # Whoever learns did so in the warm-up, at the longest delay.
        is_told = run.delay == self.setting.longest
        made = replace(made, converged=slots_to_learn if is_told else None)
        if run.way in ("kg-200", "cg-pull"):  # a machine has tasks of any worker
            made = replace(made, used=None, imbalance=None)
        return made

    def _length(self, run: GridRun) -> float:
        length = self.setting.length(run.delay)
        return min(length, _APART) if run.hetero == "executors" else length

    def _warm(self, cluster: MeasuredCluster, run: GridRun) -> tuple[float, int | None]:
        """What a way can do on a cluster, about, and what it has learned of it: once for each."""
        control = self._control(run)
        if control not in self._learned:
            machines, words = self._machines(run, self.setting.longest), self.words[run.data]
            batches = _TO_LEARN.get(run.way, 1)
            seconds = _SHORT if run.way in _TO_LEARN else _GLIMPSE
            messages = self._affordable(words, machines.limit * seconds, batches)
            slots = cluster.saturate(run.way, machines, words.topic, messages, batches, control)
            warm = Measures(slots, machines.limit)
            took = slots_until(warm.used) if run.way == "cg-delegated" else None
            self._learned[control] = (_expected(run.way, warm), took)
        return self._learned[control]

    def _in_one_go(self, cluster: MeasuredCluster, run: GridRun) -> RunResult:
        """Where a new query would put workers on other executors, it learns and is measured."""
        outcome = run.outcome
        machines, words = self._machines(run, outcome.delay), self.words[run.data]
        batches = _TO_LEARN[run.way] + _MEASURED_AT_ONCE
        messages = self._affordable(words, machines.limit * self._length(run), batches)
        slots = cluster.saturate(
            run.way, machines, words.topic, messages, batches, self._control(run)
        )
        return self._filled(outcome, machines.limit, slots, _MEASURED_AT_ONCE)

    def _filled(
        self, outcome: RunResult, limit: float, slots: Sequence[Slot], measured: int
    ) -> RunResult:
        """What the last slots tell, and how soon they were like that."""
        told = Measures(slots[-measured:], limit)
        keys, size = told.held
        return replace(
            outcome,
            throughput=told.throughput,
            limit=limit,
            working=told.working,
            copies=keys / self.words[outcome.data].distinct(slots[-1].messages),
            state_bytes=size,
            used=median(told.used),
            imbalance=told.imbalance,
            converged=slots_until(Measures(slots, limit).used),
            messages=slots[-1].messages,
        )

    def _latency(self, cluster: MeasuredCluster, run: GridRun, table: Table) -> RunResult:
        """From Kafka's time of a message until it is counted, at what key grouping can just do."""
        outcome = run.outcome
        by_key = table.find(replace(outcome, scheme="kg", offered=None))
        if by_key is None or by_key.working is None:
            raise ValueError("latencies are measured at a part of what kg can do: add it")
        rate = _LOAD * by_key.working
        self._warm(cluster, run)
        machines, words = self._machines(run, outcome.delay), self.words[run.data]
        length = max(_LEAST_OFFERED, self.setting.length(run.delay))
        seconds = (_SETTLE * length, _MEASURE * length)
        slots = cluster.offer(
            run.way, machines, self.servers, words.sample, rate, seconds, self._control(run)
        )
        told = Measures(slots, machines.limit)
        return replace(
            outcome,
            limit=machines.limit,
            offered=rate,
            p50=told.latency(0.5),
            p95=told.latency(0.95),
            p99=told.latency(0.99),
            messages=slots[-1].messages,
        )

    def _changing(self, cluster: MeasuredCluster, run: GridRun) -> RunResult:
        """Other workers become slow in the middle of a run; its slots are kept in series.csv."""
        outcome = run.outcome
        before, after = self.setting.speeds(run.seed), self.setting.speeds(run.seed + 1000)
        place = strategies.place(run.way, self._machine_numbers)
        machines = Changing(outcome.delay / 1000, before, place, later=after, change=CHANGE)
        words = self.words[run.data]
        # Who does not learn is slow, and needs no long slots for it.
        wanted = machines.limit * (_GLIMPSE if run.way == "kg" else _SHORT)
        messages = self._affordable(words, wanted, _CHANGING_SLOTS)
        slots = cluster.saturate(
            run.way, machines, words.topic, messages, _CHANGING_SLOTS, self._control(run)
        )
        told = Measures(slots, machines.limit)
        SlotSeries(self.out).put(run.way, slots, machines.limit)
        return replace(
            outcome,
            limit=machines.limit,
            throughput=told.throughput,
            working=told.working,
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
        return Machines(service, speeds, strategies.place(run.way, self._machine_numbers))

    @property
    def _machine_numbers(self) -> Path:
        folder = self.scratch / "machines"
        folder.mkdir(exist_ok=True)
        return folder

    def _control(self, run: GridRun) -> Path:
        return self.scratch / f"control of {run.way} {run.hetero} {run.seed} {run.data}"

    def _affordable(self, words: Words, messages: float, batches: int) -> int:
        """As many messages in a micro-batch as there are for so many of them."""
        most = words.topic.messages // batches
        return max(SOURCES, min(int(messages), most) // SOURCES * SOURCES)


def _expected(way: str, warm: Measures) -> float:
    """The part of the limit that a way will reach, about, to make its runs equally long."""
    if way == "cg-pull":  # which has yet to be seen in so short a micro-batch
        return 0.9
    if way == "kg-200":
        return min(1.0, Measures(warm.slots[-1:], warm.limit).working / warm.limit)
    return warm.used[-1]
