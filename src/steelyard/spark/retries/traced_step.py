"""A step of a plan with what is known of its inputs, and the doubts about its expressions.

An expression of the step enters; the reasons leave why its value may differ when a task is run
again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType

from steelyard.spark.retries.known_functions import BY_ORDER, BY_POSITION, FUNCTIONS
from steelyard.spark.retries.plan_text import COLUMN_NUMBER, Item, Step
from steelyard.spark.retries.rows import UNSEEN, Doubt, Kind, Rows, joined, worst

_CALL = re.compile(r"([^\s(),\[\]]*\w[^\s(),\[\]]*)\(")

_PYTHON = re.compile(r"\)#\d")
"""A call of a Python function has a number behind it."""

_VARIABLE = re.compile(r"\blambda \w+#(\d+)L?")

_SUBQUERY = re.compile(r"(?<![^\s(,\[])(?:scalar-subquery|exists|list)#(\d+)(?= \[)")
"""A subquery has the list of outer columns behind it; a column of the same name has none."""


@dataclass
class TracedStep:
    """A step whose inputs are known."""

    step: Step
    inputs: list[Rows]
    outer: Rows | None
    """The rows in whose subquery it is."""
    kinds: Mapping[int, DataType]
    follow: Callable[[Step, Rows | None], Rows]
    """What another step gives."""
    used: frozenset[int] | None = None
    """The columns that later steps mention; None if all of them may be in the result."""

    @property
    def rows(self) -> Rows:
        """Of its only, or first, input."""
        return self.inputs[0]

    def doubt(self, expression: str, more: frozenset[str] = frozenset()) -> Doubt | None:
        """A doubt about an expression over the rows; `more` are other functions it may call."""
        return worst(self.doubts(expression, more))

    def doubts(self, expression: str, more: frozenset[str] = frozenset()) -> list[Doubt]:
        """All doubts about an expression."""
        rows = joined(self.inputs)
        doubts = []
        for number, name in rows.names.items():
            if "(" in name:  # looks like a call
                expression = re.sub(rf"{re.escape(name)}#{number}\b", f"#{number}", expression)
        expression, _ = self._without(_VARIABLE, expression)
        expression, subqueries = self._without(_SUBQUERY, expression)
        if subqueries and not self._subqueries_are_sure(subqueries):
            doubts.append(Doubt("a subquery", among=frozenset()))
        if _PYTHON.search(expression):
            doubts.append(Doubt("a Python function"))
        called = [name for name in calls_in(expression) if name not in more]
        doubts += self._doubts_about_calls(called)
        numbers = sorted({int(number) for number in COLUMN_NUMBER.findall(expression)})
        return [*doubts, *filter(None, (self._about(n, expression) for n in numbers))]

    def unread_doubt(self, item: Item) -> Doubt | None:
        """A doubt about a part of a name that may belong to the expression.

        A name that Spark makes has the calls of its expression in it.
        """
        return self.doubt(item.unread, frozenset(calls_in(item.expression)))

    def _doubts_about_calls(self, names: Sequence[str]) -> list[Doubt]:
        doubts = []
        for name in names:
            if name in BY_POSITION:
                if not joined(self.inputs).ordered:
                    among = frozenset[int]() if name == "monotonically_increasing_id" else None
                    doubts.append(Doubt(f"{name}() behind a shuffle", Kind.RANDOM, among))
            elif name not in FUNCTIONS:
                kind = Kind.ORDER if name in BY_ORDER else Kind.UNKNOWN
                doubts.append(Doubt(f"{name}()", kind))
        return doubts

    def _about(self, number: int, expression: str) -> Doubt | None:
        """A doubt about a column of the inputs, or of the rows in whose subquery they are."""
        rows = joined(self.inputs)
        doubt = _about_column(rows, number, expression)
        if self.outer is None or number in rows.names:
            return doubt
        return doubt if _about_column(self.outer, number, expression) else None

    def _without(self, pattern: re.Pattern[str], expression: str) -> tuple[str, set[int]]:
        """The expression without what looks like the pattern and is no column, and its numbers."""
        columns = set(joined(self.inputs).names) | set(self.outer.names if self.outer else ())
        columns |= self.step.numbers_below
        numbers = {int(number) for number in pattern.findall(expression)} - columns
        return pattern.sub(lambda m: "" if int(m[1]) in numbers else m[0], expression), numbers

    def _subqueries_are_sure(self, numbers: set[int]) -> bool:
        plans = self.step.subqueries
        found = [self.follow(plan, joined(self.inputs)) for plan in plans]
        return len(numbers) <= len(plans) and all(rows.are_sure for rows in found)


def calls_in(expression: str) -> list[str]:
    """The names of all functions in an expression, and of what looks like them, each once.

    >>> calls_in("if((id#1L > 3), known, uuid(Some(7)))")
    ['if', 'uuid', 'some']
    """
    return list(dict.fromkeys(name.lower() for name in _CALL.findall(expression)))


def _about_column(rows: Rows, number: int, expression: str) -> Doubt | None:
    """A range does not give the number of its column, which has always the same name."""
    if number in rows.names or rows.others is not None:
        return rows.doubt(number)
    return None if re.search(rf"\bid#{number}L", expression) else UNSEEN
