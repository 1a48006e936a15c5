"""What to do: one thing, and the line of code.

What the work is and what it would cost enter; a recommendation leaves. "Nothing" is one too.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.doctor.costs import Cost
from steelyard.doctor.counts import BUCKETS
from steelyard.plans import Planner
from steelyard.printable import printable
from steelyard.validation import require_whole

WORKS = ("python", "aggregate", "join", "write", "stream")
"""What is done with the rows of a key."""

WORTH = 1.25
"""Below this much longer than need be it is not worth a change."""

_LEAST = 10
"""With fewer messages for each worker than this nothing is worth a change."""


@dataclass(frozen=True)
class Advice:
    """One recommendation."""

    what: str
    """In a few words; begins with "nothing" where nothing has to be done."""
    code: str
    why: str

    @property
    def is_nothing(self) -> bool:
        """Whether what Spark does itself is good enough."""
        return self.what.startswith("nothing")


@dataclass(frozen=True)
class Job:
    """The work that is to be done, as code would write it."""

    work: str
    key: tuple[str, ...]
    workers: int
    capacities: tuple[float, ...] | None = None
    nested: tuple[str, ...] = ()
    """Those of the key's columns that are fields within another column."""

    def __post_init__(self) -> None:
        if self.work not in WORKS:
            raise ValueError(f"work must be one of {', '.join(WORKS)}, got {self.work!r}")
        require_whole("workers", self.workers, least=1, most=BUCKETS)
        if self.capacities is not None and len(self.capacities) != self.workers:
            raise ValueError(
                f"capacities must be one number for each of {_so_many(self.workers)}, "
                f"got {len(self.capacities)}"
            )
        Planner(self.workers, buckets=BUCKETS, capacities=self.capacities)  # refuses bad ones

    @property
    def plain(self) -> str:
        """Spark's own way."""
        keys, n = self._keys, self.workers
        return {
            "python": f"{self._frame}.repartition({n}, {keys}).mapInArrow(function, schema)",
            "aggregate": f"{self._frame}.groupBy({keys}).agg(...)",
            "join": f"{self._frame}.join(other, {self._on})",
            "write": f"{self._frame}.repartition({n}, {keys}).write.parquet(path)",
            "stream": f"{self._frame}.groupBy({keys}).agg(...).writeStream",
        }[self.work]

    @property
    def balanced(self) -> str:
        """This package's."""
        some, keys = self._settings, self._keys
        balanced = f"sy.repartition({self._frame}, {self.workers}, {keys}{self._capacities})"
        return {
            "python": f"sy.group_by({self._frame}, {keys}, {some}).map_arrow(function, schema)",
            "join": f"sy.join({self._frame}, other, {self._on}, {some})",
            "write": f"{balanced}.write.parquet(path)",
            "stream": f"sy.group_by({self._frame}, {keys}, {some}, "
            f'{self._placement}control="/shared/path").aggregate(sy.Count())',
        }[self.work]

    @property
    def without_nulls(self) -> str:
        """Spark's own way, with the rows that have a whole key."""
        filtered = f"{self._frame}.dropna(subset=[{self._keys}])"
        return self.plain.replace(self._frame, filtered, 1)

    @property
    def counted(self) -> str:
        """A look at the keys."""
        return f"{self._frame}.groupBy({self._keys}).count()"

    @property
    def _settings(self) -> str:
        return f"workers={self.workers}{self._capacities}"

    @property
    def _capacities(self) -> str:
        return "" if self.capacities is None else ", capacities=capacities"

    @property
    def _placement(self) -> str:
        return "" if self.capacities is None else 'placement="delegated", '

    @property
    def _frame(self) -> str:
        """The frame, with columns of their own for keys that are fields of others."""
        frame = "stream" if self.work == "stream" else "df"
        taken = (f".withColumn({_quoted(_flat(n))}, F.col({_quoted(n)}))" for n in self.nested)
        return frame + "".join(taken)

    @property
    def _names(self) -> list[str]:
        return [_quoted(_flat(name) if name in self.nested else name) for name in self.key]

    @property
    def _keys(self) -> str:
        return ", ".join(self._names)

    @property
    def _on(self) -> str:
        return self._keys if len(self.key) == 1 else f"[{self._keys}]"


def advise(
    job: Job, costs: Sequence[Cost], messages: int, p1: float, *, hottest_is_null: bool = False
) -> Advice:
    """What to do about it."""
    by_way = {cost.way: cost for cost in costs}
    plain, ours = by_way["kg"].slow_down, by_way["cg"].slow_down
    if job.work == "aggregate":
        return Advice(
            "nothing: Spark's own groupBy combines on the map side",
            job.plain,
            "Every task first aggregates its own rows; one row for each key leaves it, so a hot "
            "key weighs no more than any other. That holds for count, sum, avg, min, max and their "
            "like; for collect_list, or functions in Python, ask again with work=python.",
        )
    if messages < _LEAST * job.workers:
        why = f"{messages:,} messages are too few for {job.workers:,} workers to matter."
        return Advice("nothing: there is hardly any data", job.plain, why)
    if plain < WORTH * ours:
        return Advice(
            f"nothing: not skewed for {_so_many(job.workers)}",
            job.plain,
            f"By key the slowest task needs {plain:.2f} times what it should; below {WORTH:g} "
            "times what can be had a change is not worth its trouble.",
        )
    if hottest_is_null and p1 * job.workers > 1:
        return _about_nulls(job, plain, p1)
    return Advice(_WHAT[job.work], job.balanced, _why(job, plain, ours, p1))


_WHAT = {
    "python": "let balanced workers run the Python code",
    "join": "join on balanced partitions",
    "write": "write balanced partitions",
    "stream": "group the stream on balanced workers",
}
_MORE = {
    "python": "The function gets some of a worker's rows at a time and must be right for any split "
    "of a hot key; with whole_light_keys=True all other keys come whole. If it does not care for "
    "keys at all, plain df.repartition(n) balances as well.",
    "join": "Matching rows of the other frame are copied to the workers of a hot key only. If that "
    "frame fits into the memory of an executor, F.broadcast(other) is faster still.",
    "write": "A hot key is in several files; every other one stays in one.",
    "stream": "The workers learn hot keys while the stream runs, and merge what they counted.",
}


def _why(job: Job, plain: float, ours: float, p1: float) -> str:
    by_key = f"By key the slowest task needs {plain:.1f} times what it should, balanced {ours:.2f}."
    if p1 * job.workers > 1:
        cause = f"No hash helps: the hottest key alone is {p1 * job.workers:.1f} workers' work."
    elif job.capacities is not None:
        cause = "Equal parts are too much for the slow workers, and some parts are not equal."
    else:
        cause = "No key is too much for a worker, but too many large ones fall together."
    return f"{by_key} {cause} {_MORE[job.work]}"


def _about_nulls(job: Job, plain: float, p1: float) -> Advice:
    """A null that is hot is most often no key at all; and in a join nulls never match."""
    if p1 == 1:
        return Advice(
            "check the column: all keys are null"
            if len(job.key) == 1
            else "check the columns: all keys have a null",
            job.counted,
            "There is nothing to group by. The column may be another than was meant, or be read "
            "as another type than it has.",
        )
    if job.work == "join":
        kept = (
            "A null never matches: an inner join drops these rows anyway, and a left one can get "
            "them back by a union."
        )
    else:
        kept = f"If they are wanted, {job.balanced} shares them out."
    why = (
        f"By key the slowest task needs {plain:.1f} times what it should, as {100 * p1:.2f} % of "
        f"the messages have a null in their key. {kept} Examine the others by themselves: there "
        "may be hot keys among them too."
    )
    return Advice("filter the nulls, or check the column", job.without_nulls, why)


def _quoted(name: str) -> str:
    return printable(json.dumps(name, ensure_ascii=False))


def _flat(name: str) -> str:
    return name.replace(".", "_")


def _so_many(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers:,} workers"
