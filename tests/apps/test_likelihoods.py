import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB, MultinomialNB

from steelyard.apps.likelihoods import Likelihoods

SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 4))
ALPHAS = st.sampled_from([0.01, 0.5, 1.0, 3.0])


def counters(features, classes):
    """Return the table of counters for a table of values by class for each feature."""
    rows = [(None, None, name, count) for name, count in enumerate(classes)]
    rows += [
        (feature, f"{value:02}", name, int(table[value, name]))
        for feature, table in features.items()
        for value, name in zip(*np.nonzero(table), strict=True)
    ]
    kinds = [pa.string(), pa.string(), pa.int64(), pa.int64()]
    names = ["feature", "value", "class", "count"]
    columns = [pa.array(c, kind) for c, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.table(columns, names)


@given(SHAPES, st.integers(0, 2**32), ALPHAS)
def test_bags_of_words_equal_multinomial_nb_of_scikit_learn(shape, seed, alpha):
    """The same counts give the same logarithms."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 20, shape)
    table[:, 0] += 1  # a word that never occurs is unknown
    rows = rng.integers(1, 9, shape[1])
    ours = Likelihoods.of(counters({"words": table}, rows), alpha)
    theirs = MultinomialNB(alpha=alpha)
    theirs.fit(table.T, np.arange(shape[1]), sample_weight=np.ones(shape[1]))
    np.testing.assert_allclose(ours.features["words"].logs.T, theirs.feature_log_prob_)
    np.testing.assert_allclose(np.exp(ours.priors), rows / rows.sum())
    np.testing.assert_allclose(np.exp(ours.features["words"].logs).sum(axis=0), 1)


@given(st.integers(0, 2**32), ALPHAS)
def test_columns_equal_categorical_nb_of_scikit_learn(seed, alpha):
    """Two features with one value per row give the same logarithms and the same priors."""
    rng = np.random.default_rng(seed)
    values = np.vstack([np.repeat(np.arange(4)[:, None], 2, axis=1), rng.integers(0, 4, (40, 2))])
    classes = np.append(np.arange(4) % 3, rng.integers(0, 3, 40))
    tables = {name: np.zeros((4, 3), int) for name in ("a", "b")}
    for row, label in zip(values, classes, strict=True):
        for name, value in zip(tables, row, strict=True):
            tables[name][value, label] += 1
    ours = Likelihoods.of(counters(tables, np.bincount(classes).tolist()), alpha)
    theirs = CategoricalNB(alpha=alpha).fit(values, classes)
    np.testing.assert_allclose(ours.priors, theirs.class_log_prior_)
    for name, expected in zip("ab", theirs.feature_log_prob_, strict=True):
        np.testing.assert_allclose(ours.features[name].logs.T, expected)


def test_impossible_counters_are_refused():
    """An empty table, a class without rows, and an alpha of 0 are refused."""
    table = counters({"words": np.array([[1, 2]])}, [3, 4])
    with pytest.raises(ValueError, match="no rows to learn from: no row has a label"):
        Likelihoods.of(table.slice(0, 0), 1.0)
    with pytest.raises(ValueError, match="the class 1 has counters of features, but no rows"):
        Likelihoods.of(table.filter(pa.array([True, False, True, True])), 1.0)
    with pytest.raises(ValueError, match="alpha must be a number above 0, got 0"):
        Likelihoods.of(table, 0)
