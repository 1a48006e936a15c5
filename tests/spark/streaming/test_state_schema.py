"""The definition of a query as a type, and the errors of Spark that compare two such types."""

from pyspark.sql import functions as F

from steelyard.control.definition import Definition
from steelyard.spark.streaming.state_schema import (
    definition_columns,
    definition_in,
    definition_word,
    explanation_of,
)

SUM = Definition(aggregators=("Sum(column='id')",), keys=("page string",), placement="pull")
MAX = Definition(aggregators=("Max(column='id')",), keys=("page string",), placement="pull")


def type_of(spark, definition):
    """Return the type of the columns that stand for a definition."""
    columns = definition_columns(definition, F.lit(None).cast("string"))
    return spark.range(1).select(*(c.alias(name) for name, c in columns.items())).schema


def types_in(kind):
    """Return the types without the names."""
    return [field.dataType for field in kind.fields]


def test_definitions_differ_in_types_and_not_only_in_names(spark):
    """Spark compares types; equal definitions have equal types in every process."""
    assert type_of(spark, SUM) == type_of(spark, SUM)
    assert types_in(type_of(spark, SUM)) != types_in(type_of(spark, MAX))


def test_types_of_states_are_left_to_spark(spark):
    """Spark compares the types of states itself."""
    typed = Definition(SUM.aggregators, SUM.keys, placement="pull", states=("sum bigint",))
    assert types_in(type_of(spark, SUM)) == types_in(type_of(spark, typed))


def test_the_name_of_a_column_has_the_definition(spark):
    """A checkpoint keeps the names of its key columns, so they tell which query it is of."""
    names = type_of(spark, SUM).names
    word = definition_word(SUM)
    assert SUM.to_json() == definition_in(names[0]) == definition_in(word)
    assert word.isidentifier()
    assert [None, None] == [definition_in(names[1]), definition_in("page")]


def test_only_a_refused_definition_is_explained(spark):
    """Other errors may contain definitions too, because they show the plan of the query."""
    was, now = (type_of(spark, definition).simpleString() for definition in (SUM, MAX))
    refused = "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Existing key_schema={} and new key_schema={}"
    assert "aggregators Sum(column='id'), and this query has Max" in explanation_of(
        refused.format(was, now)
    )
    assert explanation_of(refused.format(now, now)) is None
    assert explanation_of(refused.format("page string", now)) is None
    assert explanation_of(refused.format(was, now[:60])) is None
    assert explanation_of(f"[STREAM_FAILED] {was} {now}") is None


def test_the_sentence_of_a_task_is_found_in_its_error():
    """With a control path a task refuses the definition, and Spark adds its own lines."""
    sentence = (
        "the checkpoint is of a query with the keys a long, and this query has b long: keep them "
        "as they were, or use a new checkpoint"
    )
    assert explanation_of(f"[STREAM_FAILED] at x\nValueError: {sentence}\n\tat y") == sentence
