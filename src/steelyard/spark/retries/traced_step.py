"""A step of a plan with its inputs, and the doubts about its expressions.

An expression of the step enters; the reasons why its value may differ after a task retry leave.
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
"""The end of a call of a Python function: a number follows the bracket."""

_VARIABLE = re.compile(r"\blambda \w+#(\d+)L?")

_SUBQUERY = re.compile(r"(?<![^\s(,\[])(?:scalar-subquery|exists|list)#(\d+)(?= \[)")
"""A subquery, which a list of outer columns follows; no list follows a column of the same name."""


@dataclass
class TracedStep:
    """A step with the rows of its inputs."""

    step: Step
    inputs: list[Rows]
    outer: Rows | None
    """The rows of the outer query, if the step is part of a subquery."""
    types: Mapping[int, DataType]
    follow: Callable[[Step, Rows | None], Rows]
    """Returns the rows that another step gives."""
    used: frozenset[int] | None = None
    """The columns that later steps mention; None if the result may contain any column."""
    is_streaming: bool = False
    """True if the step may be part of a streaming query."""

    @property
    def rows(self) -> Rows:
        """The rows of the first input."""
        return self.inputs[0]

    def doubt(self, expression: str, more: frozenset[str] = frozenset()) -> Doubt | None:
        """Return the worst doubt about an expression; None if it is deterministic.

        `more` names additional functions that are deterministic in this expression.
        """
        return worst(self.doubts(expression, more))

    def doubts(self, expression: str, more: frozenset[str] = frozenset()) -> list[Doubt]:
        """Return all doubts about an expression."""
        rows = joined(self.inputs)
        doubts = []
        for number, name in rows.names.items():
            if "(" in name:  # the name of the column resembles a call
                expression = re.sub(rf"{re.escape(name)}#{number}\b", f"#{number}", expression)
        expression, _ = self._without(_VARIABLE, expression)
        expression, subqueries = self._without(_SUBQUERY, expression)
        if subqueries and not self._subqueries_are_deterministic(subqueries):
            doubts.append(Doubt("a subquery", common=frozenset()))
        if _PYTHON.search(expression):
            doubts.append(Doubt("a Python function"))
        called = [name for name in calls_in(expression) if name not in more]
        doubts += self._doubts_about_calls(called)
        numbers = sorted({int(number) for number in COLUMN_NUMBER.findall(expression)})
        return [*doubts, *filter(None, (self._about(n, expression) for n in numbers))]

    def ambiguous_doubt(self, item: Item) -> Doubt | None:
        """Return a doubt about the part of an item that may belong to its expression or its name.

        A name that Spark generates contains the calls of its expression, so these cause no doubt.
        """
        return self.doubt(item.ambiguous, frozenset(calls_in(item.expression)))

    def _doubts_about_calls(self, names: Sequence[str]) -> list[Doubt]:
        doubts = []
        for name in names:
            if name in BY_POSITION:
                if not joined(self.inputs).ordered:
                    common = frozenset[int]() if name == "monotonically_increasing_id" else None
                    doubts.append(Doubt(f"{name}() after a shuffle", Kind.RANDOM, common))
            elif name not in FUNCTIONS:
                kind = Kind.ORDER if name in BY_ORDER else Kind.UNKNOWN
                doubts.append(Doubt(f"{name}()", kind))
        return doubts

    def _about(self, number: int, expression: str) -> Doubt | None:
        """Return the doubt about a column of the inputs or of the outer query."""
        rows = joined(self.inputs)
        doubt = _about_column(rows, number, expression)
        if self.outer is None or number in rows.names:
            return doubt
        return doubt if _about_column(self.outer, number, expression) else None

    def _without(self, pattern: re.Pattern[str], expression: str) -> tuple[str, set[int]]:
        """Return an expression without matches of a pattern, and the numbers of these matches.

        Matches that are columns stay in the expression.
        """
        columns = set(joined(self.inputs).names) | set(self.outer.names if self.outer else ())
        columns |= self.step.numbers_below
        numbers = {int(number) for number in pattern.findall(expression)} - columns
        return pattern.sub(lambda m: "" if int(m[1]) in numbers else m[0], expression), numbers

    def _subqueries_are_deterministic(self, numbers: set[int]) -> bool:
        plans = self.step.subqueries
        found = [self.follow(plan, joined(self.inputs)) for plan in plans]
        return len(numbers) <= len(plans) and all(rows.are_deterministic for rows in found)


def calls_in(expression: str) -> list[str]:
    """Return the name before each opening bracket of an expression, each name once.

    Most of them are names of functions.

    >>> calls_in("if((id#1L > 3), known, uuid(Some(7)))")
    ['if', 'uuid', 'some']
    """
    return list(dict.fromkeys(name.lower() for name in _CALL.findall(expression)))


def _about_column(rows: Rows, number: int, expression: str) -> Doubt | None:
    """Return the doubt about a column of these rows.

    EXPLAIN does not print the number of the column of a range, which is always named `id`.
    """
    if number in rows.names or rows.others is not None:
        return rows.doubt(number)
    return None if re.search(rf"\bid#{number}L", expression) else UNSEEN
