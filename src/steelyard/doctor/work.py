"""The kinds of work that the doctor knows, one value for each.

A kind of work holds Spark's own line of code for it, the balanced line, the recommendation and its
explanation. Everything that depends on the work asks these values.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class KindOfWork:
    """A kind of work on the rows of a key.

    The lines of code are templates: `{frame}`, `{keys}`, `{on}` (the keys of a join), `{workers}`,
    `{capacities}` and `{placement}` are filled in by a `Job`.
    """

    name: str
    """Short name, as in JSON and on the command line."""
    meaning: str = field(repr=False)
    """The work in a few words."""
    spark_code: str = field(repr=False)
    """Spark's own line of code."""
    balanced_code: str | None = field(repr=False)
    """Steelyard's line of code; None if Spark's own code is never skewed."""
    recommendation: str = field(repr=False)
    """The recommendation in a few words."""
    explanation: str = field(repr=False)
    """Properties of the recommended code, and when other code is better."""
    row_time: float = field(default=2.0, repr=False)
    """Microseconds that the work takes for a row, if the user does not say."""
    task_time: float = field(default=10_000.0, repr=False)
    """Microseconds that a task takes besides its rows."""
    least_saving: float = field(default=1.0, repr=False)
    """Seconds that a change has to save; 0 if the time of a row is hardly known."""
    code_with_partitions: str | None = field(default=None, repr=False)
    """Spark's own line of code with `{partitions}`; None if more partitions are no remedy."""
    more_partitions: str = field(default="", repr=False)
    """Properties of the code with more partitions."""
    frame: str = field(default="df", repr=False)
    """Name of the DataFrame in the code."""

    @classmethod
    def named(cls, name: str) -> "KindOfWork":
        """Return the work of this name.

        >>> KindOfWork.named("join").meaning
        'a join on the key'

        Raises:
            ValueError: No work has this name.
        """
        for work in WORKS:
            if work.name == name:
                return work
        names = ", ".join(work.name for work in WORKS)
        raise ValueError(f"work must be one of {names}, got {name!r}")


PYTHON = KindOfWork(
    name="python",
    meaning="Python code on the rows of a key",
    spark_code="{frame}.repartition({workers}, {keys}).mapInArrow(function, schema)",
    balanced_code="sy.group_by({frame}, {keys}, workers={workers}{capacities})"
    ".map_arrow(function, schema)",
    recommendation="run the Python code on balanced workers",
    explanation="The function gets some of a worker's rows in each call and must be correct for "
    "any split of a hot key. With whole_light_keys=True all rows of any other key are in one call. "
    "If the function does not depend on keys, df.repartition(n) balances as well.",
    row_time=100.0,
    task_time=100_000.0,
    least_saving=0.0,
    code_with_partitions="{frame}.repartition({partitions}, {keys}).mapInArrow(function, schema)",
    more_partitions="All rows of a key stay in one task, so the function need not change.",
)
AGGREGATE = KindOfWork(
    name="aggregate",
    meaning="a Spark aggregate such as count or sum",
    spark_code="{frame}.groupBy({keys}).agg(...)",
    balanced_code=None,
    recommendation="nothing: Spark's own groupBy combines on the map side",
    explanation="Each task first aggregates its own rows and then sends one row for each key, so "
    "a hot key costs no more than any other key. This holds for count, sum, avg, min, max and "
    "similar functions. For collect_list or Python functions, examine again with work=python.",
)
JOIN = KindOfWork(
    name="join",
    meaning="a join on the key",
    spark_code="{frame}.join(other, {on})",
    balanced_code="sy.join({frame}, other, {on}, workers={workers}{capacities})",
    recommendation="join on balanced partitions",
    explanation="Matching rows of the other DataFrame are copied only for hot keys. If that "
    "DataFrame has less than about 256 MB, df.join(F.broadcast(other), ...) is simpler and faster, "
    "because df is not shuffled.",
)
WRITE = KindOfWork(
    name="write",
    meaning="writing files with the rows of a key together",
    spark_code="{frame}.repartition({workers}, {keys}).write.parquet(path)",
    balanced_code="sy.repartition({frame}, {workers}, {keys}{capacities}).write.parquet(path)",
    recommendation="write balanced partitions",
    explanation="A hot key is in several files; each other key is in one file.",
    row_time=4.0,
    code_with_partitions="{frame}.repartition({partitions}, {keys}).write.parquet(path)",
    more_partitions="Each key stays in one file; there are {partitions} files instead of "
    "{workers}.",
)
STREAM = KindOfWork(
    name="stream",
    meaning="a stream that keeps state for each key",
    spark_code="{frame}.groupBy({keys}).agg(...).writeStream",
    balanced_code="sy.group_stream({frame}, {keys}, workers={workers}{placement}, "
    'control="/shared/path").aggregate(sy.Count())',
    recommendation="group the stream on balanced workers",
    explanation="The workers learn the hot keys while the stream runs, and Spark merges their "
    "partial results. Spark's own groupBy already combines count, sum and similar aggregates in "
    "each micro-batch before the shuffle, so they need nothing.",
    least_saving=0.0,
    frame="stream",
)

WORKS = (PYTHON, AGGREGATE, JOIN, WRITE, STREAM)
"""All kinds of work."""
