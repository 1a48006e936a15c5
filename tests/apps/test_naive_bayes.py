import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import CategoricalNB, MultinomialNB
from sklearn.preprocessing import OrdinalEncoder

from steelyard.apps.naive_bayes import Model, NaiveBayes
from tests.apps.texts import SCHEMA, texts

TRAINED, TESTED = texts(600), texts(300, seed=1)
BAYES = NaiveBayes(label="class", features=["words"], alpha=0.5)


@pytest.fixture(scope="module")
def model(spark):
    """Return a model that has learned from the texts."""
    return BAYES.fit(spark.createDataFrame(TRAINED, SCHEMA), workers=4)


def test_texts_are_classified_as_by_scikit_learn(spark, model):
    """Every text has the same class and scores, also with unknown words."""
    found = model.predict(spark.createDataFrame(TESTED, SCHEMA), scores="scores")
    rows = found.orderBy("id").collect()
    vectors = CountVectorizer(analyzer=list)
    seen = vectors.fit_transform([words for _, _, words in TRAINED])
    theirs = MultinomialNB(alpha=0.5).fit(seen, [label for _, label, _ in TRAINED])
    new = vectors.transform([words for _, _, words in TESTED])
    assert theirs.predict(new).tolist() == [row["prediction"] for row in rows]
    expected = theirs.predict_joint_log_proba(new)
    np.testing.assert_allclose([row["scores"] for row in rows], expected)
    accuracy = np.mean([row["class"] == row["prediction"] for row in rows])
    assert accuracy > 0.65, "better than to predict the most frequent class"
    assert found.columns == ["id", "class", "words", "scores", "prediction"]


def test_counters_equal_those_of_spark(spark, model):
    """Spark's groupBy gives the same counters, also of hot keys."""
    messages = BAYES.messages(spark.createDataFrame(TRAINED, SCHEMA))
    counted = messages.groupBy("feature", "value", "class").count()
    assert BAYES.model(counted).counts == model.counts
    assert sum(model.counts["count"].to_pylist()) == 600 + sum(len(w) for *_, w in TRAINED)


def test_columns_of_categories_are_classified_as_by_scikit_learn(spark):
    """Features are text, whole numbers and booleans; classes keep their type."""
    rng = np.random.default_rng(2)
    rows = [
        (int(label), ["red", "green", "blue"][(label + shift) % 3], int(size), bool(size > label))
        for label, shift, size in zip(*rng.integers(0, 3, (3, 200)), strict=True)
    ]
    features = ["color", "the.size", "large"]
    frame = spark.createDataFrame(
        rows, "label long, color string, `the.size` int, large boolean"
    ).coalesce(2)
    bayes = NaiveBayes("label", features)
    found = bayes.fit(frame, workers=2).predict(frame, "found", scores="scores")
    assert found.schema["found"].dataType == frame.schema["label"].dataType
    numbers = OrdinalEncoder().fit_transform([[c, s, b] for _, c, s, b in rows])
    theirs = CategoricalNB().fit(numbers, [label for label, *_ in rows])
    given = {tuple(row[:4]): row for row in found.collect()}
    expected = theirs.predict_joint_log_proba(numbers)
    np.testing.assert_allclose([given[row]["scores"] for row in rows], expected)
    assert theirs.predict(numbers).tolist() == [given[row]["found"] for row in rows]


def test_nulls_and_unknown_values_are_ignored(spark):
    """Nulls, also in arrays, and unknown values change neither counters nor scores."""
    rows = [("a", "x", ["u", None]), ("a", "x", None), ("b", None, ["v"]), (None, "y", ["v"])]
    frame = spark.createDataFrame(rows, "label string, one string, many array<string>")
    model = NaiveBayes("label", ["one", "many"]).fit(frame, workers=2)
    counts = {tuple(row.values())[:3]: row["count"] for row in model.counts.to_pylist()}
    rows_of = {(None, None, "a"): 2, (None, None, "b"): 1}
    assert counts == {**rows_of, ("one", "x", "a"): 2, ("many", "u", "a"): 1, ("many", "v", "b"): 1}
    new = [(0, None, None), (1, "never", ["never", None]), (2, None, ["v", "v"]), (3, "x", [])]
    found = model.predict(
        spark.createDataFrame(new, "id int, one string, many array<string>"), scores="scores"
    )
    by_id = {row["id"]: row for row in found.collect()}
    for unknown in (0, 1):
        np.testing.assert_allclose(np.exp(by_id[unknown]["scores"]), [2 / 3, 1 / 3])
    assert [by_id[i]["prediction"] for i in range(4)] == ["a", "a", "b", "a"]


def test_a_row_that_occurs_twice_is_classified_twice(spark, model):
    twice = spark.createDataFrame(TESTED[:20] * 2, SCHEMA)
    found = model.predict(twice).groupBy("id").count()
    assert {2} == {row["count"] for row in found.collect()}


def test_a_model_can_be_saved_and_loaded(spark, model, tmp_path):
    """A model is one Parquet file, which replaces the previous one; other files are refused."""
    path = tmp_path / "model.parquet"
    for _ in range(2):
        model.save(path)
    loaded = Model.load(path)
    assert BAYES == loaded.settings == pickle.loads(pickle.dumps(BAYES))
    assert model.counts == loaded.counts
    assert [path] == list(tmp_path.iterdir())
    assert spark.read.parquet(str(path)).count() == model.counts.num_rows
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"other.parquet' is not a naive Bayes model"):
        Model.load(tmp_path / "other.parquet")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"features": "words"}, "features must be a list of column names, got 'words'"),
        ({"features": []}, "features must be a list of column names, got \\[\\]"),
        ({"features": ["class"]}, "'class' is the label, and cannot be a feature too"),
        ({"alpha": 0}, "alpha must be a number above 0, got 0"),
    ],
)
def test_bad_settings_get_one_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        NaiveBayes(**{"label": "class", "features": ["words"], **settings})


def test_bad_frames_get_one_sentence(spark, model):
    """Missing columns, columns without categories and existing names are refused."""
    frame = spark.createDataFrame(TESTED[:1], SCHEMA).withColumn("weight", F.lit(0.5))
    for bayes, sentence in (
        (NaiveBayes("nothing", ["words"]), "label: there is no column 'nothing'; the columns are"),
        (NaiveBayes("words", ["class"]), "label: column 'words' must be string, .* got array"),
        (NaiveBayes("class", ["weight"]), "'weight' must be .* or an array of these, got double;"),
        (NaiveBayes("class", ["no"]), "features: there is no column 'no'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            bayes.messages(frame)
    with pytest.raises(ValueError, match="column 'class' already exists"):
        model.predict(frame, into="class")
    with pytest.raises(ValueError, match="features: there is no column 'words'"):
        model.predict(frame.drop("words"))
    with pytest.raises(ValueError, match="no rows to learn from: no row has a label"):
        BAYES.fit(frame.limit(0), workers=2)
