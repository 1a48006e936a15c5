"""What a naive Bayes classifier knows: counters enter, logarithms of probabilities leave."""

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
    """Of one feature: the values that were seen, and how likely each is in each class."""

    values: pa.Array
    logs: Floats
    """log P(value | class): a row for each value, a column for each class."""


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """Logarithms of probabilities: of the classes, and of the values of each feature in them.

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
    """In rising order."""
    priors: Floats
    """log P(class)."""
    features: dict[str, FeatureLikelihoods]

    @classmethod
    def of(cls, counts: pa.Table, alpha: float) -> Self:
        """From counters: how often each value of each feature came with each class.

        A counter without a feature tells how many rows a class has. `alpha` is added to the counter
        of every value that was seen of a feature, in every class (Lidstone's smoothing).
        """
        require_between("alpha", alpha, above=0)
        is_row = pc.is_null(counts["feature"])
        rows, others = counts.filter(is_row), counts.filter(pc.invert(is_row))
        if not rows.num_rows:
            raise ValueError("there is nothing to learn from: no row has a label")
        classes = _rising(rows["class"])
        by_class = _counted(rows, pa.array([None], pa.string()), classes)
        return cls(
            classes=classes,
            priors=np.log(by_class[0] / by_class.sum()),
            features={
                feature: _smoothed(
                    others.filter(pc.equal(others["feature"], feature)), classes, alpha
                )
                for feature in _rising(others["feature"]).to_pylist()
            },
        )


def _smoothed(counts: pa.Table, classes: pa.Array, alpha: float) -> FeatureLikelihoods:
    values = _rising(counts["value"])
    smoothed = _counted(counts, values, classes) + alpha
    return FeatureLikelihoods(values, np.log(smoothed) - np.log(smoothed.sum(axis=0)))


def _counted(counts: pa.Table, values: pa.Array, classes: pa.Array) -> Floats:
    """The counters as a table: a row for each value, a column for each class."""
    row = pc.index_in(counts["value"], values)
    column = pc.index_in(counts["class"], classes)
    if column.null_count:
        strange = counts["class"].filter(pc.is_null(column))[0].as_py()
        raise ValueError(f"counts: the class {strange!r} has values of features, but no rows")
    table = np.zeros((len(values), len(classes)))
    np.add.at(table, (row.to_numpy(), column.to_numpy()), counts["count"].to_numpy())
    return table


def _rising(column: pa.ChunkedArray) -> pa.Array:
    found = pc.unique(column)
    return found.take(pc.array_sort_indices(found))
