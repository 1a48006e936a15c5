"""The definition of a query's state, compared after a restart."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

import steelyard as sy
from steelyard.aggregators import Sum, TopK
from steelyard.aggregators.describing import described
from steelyard.control.addresses import files_at
from steelyard.control.definition import Definition
from steelyard.control.store import ControlStore

COUNTS = Definition(("Count(column='')",), ("page string",), None, "pull", ("count bigint",))


class Odd(Sum):
    """An aggregator whose settings have another `repr` in every process."""

    def __init__(self, column, function=len):
        super().__init__(column)
        self.names = {f"name {i}" for i in range(20)}
        self.by_name = {"b": {1, 2}, "a": (1.5, None)}
        self.function = function
        self._cache = object()


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"aggregators": ()}, r"aggregators Count\(column=''\), and this query has none"),
        ({"keys": ("user string",)}, "keys page string, and this query has user string"),
        ({"keys": ("page int",)}, "keys page string, and this query has page int"),
        ({"window": "60 seconds"}, "window none, and this query has 60 seconds"),
        ({"placement": "delegated"}, "placement pull, and this query has delegated"),
        ({"states": ("count double",)}, "states count bigint, and this query has count double"),
    ],
)
def test_a_difference_is_named_with_both_values(other, sentence):
    with pytest.raises(ValueError, match=f"the checkpoint is of a query with the {sentence}"):
        replace(COUNTS, **other).require_same(COUNTS.to_json())
    COUNTS.require_same(COUNTS.to_json())


def test_missing_fields_are_not_compared():
    """An older release wrote fewer fields; a file that cannot be read has none."""
    less = {name: value for name, value in vars(COUNTS).items() if name != "states"}
    for before in (json.dumps(less), "{", "[]", '"text"', "{}"):
        COUNTS.require_same(before)


def test_a_query_that_resumes_with_another_definition_is_rejected(tmp_path, remote):
    """Definitions of other queries, and those of unfinished micro-batches, are not compared."""
    sums = replace(COUNTS, aggregators=("Sum(column='id')",))
    for address in (tmp_path / "control", remote):
        store = ControlStore(address)
        store.require_same("a", 0, sums)
        store.require_same("a", 0, COUNTS)
        store.require_same("a", 1, COUNTS)
        store.require_same("b", 5, sums)
        for batch, query, other in ((1, "a", sums), (9, "b", COUNTS)):
            with pytest.raises(ValueError, match="keep them as they were, or use a new checkpoint"):
                ControlStore(address).require_same(query, batch, other)
        files_at(address).delete("definitions/a")
        store.require_same("a", 2, sums)
        store.require_same("a", 2, COUNTS)  # the micro-batch has failed and is repeated
        store.require_same("a", 3, COUNTS)
        files_at(address).replace("definitions/a", "nonsense")
        store.require_same("a", 4, sums)


def test_aggregators_are_described_alike_in_every_process():
    """The text contains no addresses, no set order and no private fields."""
    text = described(Odd("id", lambda: 0))
    assert described(Odd("id", len)) != text, "a function and a builtin are of different types"
    code = (
        "from tests.control.test_definition import Odd\n"
        "from steelyard.aggregators.describing import described\n"
        "print(described(Odd('id', lambda: 0)), end='')"
    )
    for _ in range(2):
        command = [sys.executable, "-c", code]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        assert text == found.stdout
    assert "0x" not in text
    assert "_cache" not in text
    assert described(TopK("id", 3)) != described(TopK("id", 4))
    assert described(Sum("id")) != described(Odd("id"))
    assert described(sy.Quantiles("ms", [0.5])) == described(sy.Quantiles("ms", (0.5,)))
