"""Naive Bayes, the running example of the paper: one counter for each feature value and class.

Labeled rows enter, as a frame or as a stream; counters leave, and a model that classifies rows with
Spark expressions.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType

import steelyard as sy
from steelyard.apps.batch_or_stream import group
from steelyard.apps.likelihoods import FeatureLikelihoods, Likelihoods
from steelyard.spark.versions.arrow import from_arrow, to_arrow
from steelyard.spark.versions.interfaces import position_in
from steelyard.validation import require_between

_CATEGORIES = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "date")
_COUNTERS = ("feature", "value", "class", "count")
_METADATA = b"steelyard.naive_bayes"


@dataclass(frozen=True)
class NaiveBayes:
    """The settings of a naive Bayes classifier: its label and its features.

    A feature is a column of categories (text, whole numbers, booleans, dates), or an array of
    them, such as the words of a text. Rows without a label are ignored. A feature that is null, or
    a null in an array, is left out.

    Args:
        label: The column with the class of a row.
        features: The feature columns.
        alpha: The smoothing: the number that is added to every counter.

    Raises:
        ValueError: `features` is not a list of column names, or contains the label, or `alpha` is
            not above 0.

    >>> rows = spark.createDataFrame(
    ...     [("good", ["fine", "film"]), ("bad", ["dull", "film"]), ("good", ["fine", "day"])],
    ...     "opinion string, words array<string>",
    ... )
    >>> model = NaiveBayes(label="opinion", features=["words"]).fit(rows, workers=2)
    >>> new = spark.createDataFrame([(["a", "dull", "film"],)], "words array<string>")
    >>> model.predict(new).first()
    Row(words=['a', 'dull', 'film'], prediction='bad')
    """

    label: str
    features: Sequence[str]
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.features, str) or not self.features:
            raise ValueError(f"features must be a list of column names, got {self.features!r}")
        if self.label in self.features:
            raise ValueError(f"features: {self.label!r} is the label, and cannot be a feature too")
        require_between("alpha", self.alpha, above=0)
        object.__setattr__(self, "features", tuple(self.features))

    def messages(self, frame: DataFrame) -> DataFrame:
        """Return the messages to count: one for each row, and one for each feature value in it.

        The message for the row itself has neither feature nor value. The column `row` is the
        original row; it distinguishes messages of a hot counter.
        """
        _require_categories(frame, "label", self.label, may_be_array=False)
        null = F.lit(None).cast("string")
        itself = F.array(F.struct(null.alias("feature"), null.alias("value")))
        lists = [_messages(name, _values(frame, name)) for name in self.features]
        return frame.where(F.col(_quoted(self.label)).isNotNull()).select(
            F.inline(F.flatten(F.array(itself, *lists))),
            F.col(_quoted(self.label)).alias("class"),
            F.struct("*").alias("row"),
        )

    def counts(self, frame: DataFrame, *, workers: int, **grouping: Any) -> DataFrame:
        """Return the counters: feature, value, class, count; as a stream if `frame` is a stream.

        Args:
            frame: The rows to learn from: a frame or a stream.
            workers: The number of workers.
            grouping: Other arguments of `steelyard.group_by`, or of `steelyard.group_stream` for a
                stream, such as `control` and `placement`.

        Returns:
            One row for each counter.

        Raises:
            ValueError: A column is missing or is not a column of categories.
        """
        messages = self.messages(frame)
        grouped = group(messages, "feature", "value", "class", workers=workers, **grouping)
        return grouped.aggregate(sy.Count())

    def model(self, counts: DataFrame) -> "Model":
        """Return the classifier for these counters, which may come from any query."""
        counted = to_arrow(counts)
        counted = pa.table({name: counted[name] for name in _COUNTERS})
        return Model(self, counted.sort_by([(name, "ascending") for name in _COUNTERS]))

    def fit(self, frame: DataFrame, *, workers: int, **grouping: Any) -> "Model":
        """Count all rows of a frame and return the classifier.

        Args:
            frame: The rows to learn from; not a stream.
            workers: The number of workers.
            grouping: Other arguments of `steelyard.group_by`.

        Returns:
            The classifier.

        Raises:
            ValueError: A column is missing or is not a column of categories, or no row has a label.
        """
        return self.model(self.counts(frame, workers=workers, **grouping))


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier, defined by its settings and its counters."""

    settings: NaiveBayes
    counts: pa.Table
    """feature, value, class, count; the counter of a class itself has neither feature nor value."""

    def __post_init__(self) -> None:
        _ = self.likelihoods  # refuses counters without any row

    @cached_property
    def likelihoods(self) -> Likelihoods:
        """The logarithms of probabilities."""
        return Likelihoods.of(self.counts, self.settings.alpha)

    def predict(
        self, frame: DataFrame, into: str = "prediction", scores: str | None = None
    ) -> DataFrame:
        """Return the frame, or stream, with one more column: the most likely class of each row.

        A value that never occurred with any label is ignored. Of classes that are equally likely,
        the first one is chosen.

        Args:
            frame: The rows to classify.
            into: The name of the new column.
            scores: The name of a column for log P(class) + log P(row | class) of every class, in
                ascending order of the classes; no such column by default.

        Returns:
            The rows with their classes.

        Raises:
            ValueError: A feature is missing, a column `into` or `scores` exists already, or `frame`
                is a stream and a feature is an array.
        """
        for name in filter(None, (into, scores)):
            if name in frame.columns:
                raise ValueError(f"column {name!r} already exists; choose another name")
        learned, result = self.likelihoods, frame
        logs = [f"__logs{number}" for number in range(len(learned.features))]
        for column, (name, feature) in zip(logs, learned.features.items(), strict=True):
            result = _with_logs(result, frame, name, feature, column)
        totals = [
            sum((F.coalesce(F.get(column, F.lit(place)), F.lit(0.0)) for column in logs), prior)
            for place, prior in enumerate(map(F.lit, learned.priors.tolist()))
        ]
        result = result.withColumn("__totals", F.array(*totals))
        kind = from_arrow_type(learned.classes.type).simpleString()
        classes = F.array(*map(F.lit, learned.classes.to_pylist())).cast(f"array<{kind}>")
        best = position_in(F.col("__totals"), F.array_max("__totals")).cast("int")
        columns = [F.col(_quoted(name)) for name in frame.columns]
        if scores is not None:
            columns.append(F.col("__totals").alias(scores))
        return result.select(*columns, F.element_at(classes, best).alias(into))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one Parquet file, atomically: a reader gets the old or the new one."""
        settings = {
            "label": self.settings.label,
            "features": self.settings.features,
            "alpha": self.settings.alpha,
        }
        metadata = {_METADATA: json.dumps(settings).encode()}
        part = Path(f"{os.fspath(path)}.part")
        pq.write_table(self.counts.replace_schema_metadata(metadata), part)
        part.replace(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` has written."""
        counts = pq.read_table(path)
        settings = (counts.schema.metadata or {}).get(_METADATA)
        if settings is None:
            raise ValueError(f"{os.fspath(path)!r} is not a naive Bayes model")
        return cls(NaiveBayes(**json.loads(settings)), counts)


def _messages(feature: str, values: Column) -> Column:
    """Return an array of (feature, value), one for each value."""
    named = F.lit(feature).alias("feature")
    return F.transform(values, lambda value: F.struct(named, value.alias("value")))


def _with_logs(
    result: DataFrame, frame: DataFrame, name: str, feature: FeatureLikelihoods, column: str
) -> DataFrame:
    """Add a column with a feature's log likelihoods; null where the value is unknown."""
    table = pa.table({"__value": feature.values, column: list(feature.logs)})
    known = F.broadcast(from_arrow(frame.sparkSession, table))
    values = _values(frame, name)
    if not _is_array(frame, name):
        return result.join(known, F.get(values, F.lit(0)) == F.col("__value"), "left").drop(
            "__value"
        )
    if frame.isStreaming:
        raise ValueError(
            f"features: {name!r} is an array, which needs a shuffle and an aggregation; classify "
            "the micro-batches of a stream in foreachBatch"
        )
    # The sums are computed once for each distinct array, so rows need no id.
    words = frame.select(values.alias("__values")).distinct()
    words = words.select("__values", F.explode("__values").alias("__word"))
    sums = [F.sum(F.get(column, F.lit(place))) for place in range(feature.logs.shape[1])]
    found = words.join(known, F.col("__word") == F.col("__value")).groupBy("__values")
    summed = found.agg(F.array(*sums).alias(column))
    return result.join(summed, values == F.col("__values"), "left").drop("__values")


def _values(frame: DataFrame, name: str) -> Column:
    """Return the values of a feature in a row, as strings, without nulls."""
    _require_categories(frame, "features", name)
    column = F.col(_quoted(name))
    if not _is_array(frame, name):
        column = F.array(column)
    empty = F.array().cast("array<string>")
    return F.filter(F.coalesce(column.cast("array<string>"), empty), Column.isNotNull)


def _is_array(frame: DataFrame, name: str) -> bool:
    return isinstance(frame.schema[name].dataType, ArrayType)


def _require_categories(
    frame: DataFrame, argument: str, name: str, *, may_be_array: bool = True
) -> None:
    """Refuse a column that does not exist or has no categories."""
    kinds = dict(frame.dtypes)
    if name not in kinds:
        known = ", ".join(kinds)
        raise ValueError(f"{argument}: there is no column {name!r}; the columns are {known}")
    inner = kinds[name].removeprefix("array<").removesuffix(">") if may_be_array else kinds[name]
    if inner not in _CATEGORIES:
        allowed = f"{', '.join(_CATEGORIES)}{' or an array of these' if may_be_array else ''}"
        raise ValueError(
            f"{argument}: column {name!r} must be {allowed}, got {kinds[name]}; "
            "put numbers with fractions into bins first"
        )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
