"""Compute the probabilities of a naive Bayes classifier.

Counters enter; logarithms of probabilities leave.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steelyard.validation import require_between

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeatureLikelihoods:
    """The known values of one feature, and the likelihood of each value in each class."""

    values: pa.Array
    logs: Floats
    """log P(value | class): a row for each value, a column for each class."""


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """Logarithms of the probabilities of classes, and of feature values in each class.

    >>> counts = pa.table({
    ...     "feature": [None, None, "color", "color", "color"],
    ...     "value": [None, None, "red", "blue", "blue"],
    ...     "class": ["no", "yes", "no", "no", "yes"],
    ...     "count": [4, 2, 3, 1, 2],
    ... })
    >>> learned = Likelihoods.of(counts, alpha=1.0)
    >>> np.exp(learned.priors).round(3)
    array([0.667, 0.333])
    >>> learned.features["color"].values.to_pylist()
    ['blue', 'red']
    >>> np.exp(learned.features["color"].logs).round(3)
    array([[0.333, 0.75 ],
           [0.667, 0.25 ]])
    """

    classes: pa.Array
    """The classes, in ascending order."""
    priors: Floats
    """log P(class)."""
    features: dict[str, FeatureLikelihoods]

    @classmethod
    def of(cls, counts: pa.Table, alpha: float) -> Self:
        """Compute likelihoods from the counters of each feature, value and class.

        A counter without a feature is the number of rows of a class. `alpha` is added to the
        counter of every known value of a feature, in every class (Lidstone smoothing).
        """
        require_between("alpha", alpha, above=0)
        is_row = pc.is_null(counts["feature"])
        rows, others = counts.filter(is_row), counts.filter(pc.invert(is_row))
        if not rows.num_rows:
            raise ValueError("there are no rows to learn from: no row has a label")
        classes = _ascending(rows["class"])
        by_class = _counted(rows, pa.array([None], pa.string()), classes)
        return cls(
            classes=classes,
            priors=np.log(by_class[0] / by_class.sum()),
            features={
                feature: _smoothed(
                    others.filter(pc.equal(others["feature"], feature)), classes, alpha
                )
                for feature in _ascending(others["feature"]).to_pylist()
            },
        )


def _smoothed(counts: pa.Table, classes: pa.Array, alpha: float) -> FeatureLikelihoods:
    values = _ascending(counts["value"])
    smoothed = _counted(counts, values, classes) + alpha
    return FeatureLikelihoods(values, np.log(smoothed) - np.log(smoothed.sum(axis=0)))


def _counted(counts: pa.Table, values: pa.Array, classes: pa.Array) -> Floats:
    """Return the counters as a table: a row for each value, a column for each class."""
    row = pc.index_in(counts["value"], values)
    column = pc.index_in(counts["class"], classes)
    if column.null_count:
        unknown = counts["class"].filter(pc.is_null(column))[0].as_py()
        raise ValueError(f"counts: the class {unknown!r} has counters of features, but no rows")
    table = np.zeros((len(values), len(classes)))
    np.add.at(table, (row.to_numpy(), column.to_numpy()), counts["count"].to_numpy())
    return table


def _ascending(column: pa.ChunkedArray) -> pa.Array:
    found = pc.unique(column)
    return found.take(pc.array_sort_indices(found))
