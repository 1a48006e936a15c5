"""A step of a plan with what is known of its inputs, and the doubts about its expressions.

An expression of the step enters; the reasons leave why its value may differ when a task is run
again.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql.types import DataType

from steelyard.spark.retries.known_functions import BY_ORDER, BY_POSITION, FUNCTIONS
from steelyard.spark.retries.plan_text import Step
from steelyard.spark.retries.rows import Doubt, Kind, Rows, joined, worst

COLUMN_NUMBER = re.compile(r"#(\d+)")

_CALL = re.compile(r"([^\s(),\[\]]*\w[^\s(),\[\]]*)\(")

_PYTHON = re.compile(r"\)#\d")
"""A call of a Python function has a number behind it."""

_VARIABLE = re.compile(r"lambda \w+#\d+L?")

_SUBQUERY = re.compile(r"(?:scalar-subquery|exists|list)#\d+")


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
                expression = expression.replace(f"{name}#{number}", f"#{number}")
        expression = _VARIABLE.sub("", expression)
        expression, subqueries = _SUBQUERY.subn("", expression)
        if subqueries and not self._subqueries_are_sure():
            doubts.append(Doubt("a subquery", among=frozenset()))
        if _PYTHON.search(expression):
            doubts.append(Doubt("a Python function"))
        for name in map(str.lower, _CALL.findall(expression)):
            if name in BY_POSITION:
                if not rows.ordered:
                    among = frozenset[int]() if name == "monotonically_increasing_id" else None
                    doubts.append(Doubt(f"{name}() behind a shuffle", Kind.RANDOM, among))
            elif name not in FUNCTIONS and name not in more:
                kind = Kind.ORDER if name in BY_ORDER else Kind.UNKNOWN
                doubts.append(Doubt(f"{name}()", kind))
        numbers = sorted({int(number) for number in COLUMN_NUMBER.findall(expression)})
        if self.outer is not None:
            sure = {n for n in numbers if n not in rows.names and self.outer.doubt(n) is None}
            numbers = [number for number in numbers if number not in sure]
        return [*doubts, *filter(None, map(rows.doubt, numbers))]

    def _subqueries_are_sure(self) -> bool:
        plans = self.step.subqueries
        found = [self.follow(plan, joined(self.inputs)) for plan in plans]
        return bool(plans) and all(rows.are_sure for rows in found)
