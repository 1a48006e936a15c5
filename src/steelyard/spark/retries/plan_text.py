"""Parse the text of EXPLAIN.

Text enters; a tree of steps leaves. The expressions of each step stay text. Text that cannot be
parsed gives None, and its columns are doubtful.

EXPLAIN prints string literals without quotes, and names without backticks. Both may contain
brackets, commas and ` AS `, so the end of an expression is not always known. An expression that
is cut too long may get a needless doubt. An expression that is cut too short may miss a doubt.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

_ANALYZED, _OPTIMIZED = "== Analyzed Logical Plan ==", "== Optimized Logical Plan =="
_PHYSICAL = "== Physical Plan =="

_AS = " AS "

_LINE = re.compile(r"((?:   |:  )*)(\+- |:- )?([~'!]?)(\w+)(.*)")

COLUMN_NUMBER = re.compile(r"#(\d+)")

_ID = re.compile(r"#(\d+)(L?)(?:-T\d+ms)?$")

_BRACKETS = {")": "(", "]": "[", "}": "{"}

_COMPLETE = re.compile(r"[^\s()\[\]{}]*\(|[^\s()\[\]{}#]+#\d+L?")

_ORDER = re.compile(r" (?:ASC|DESC) NULLS (?:FIRST|LAST)$")

CUT = re.compile(r"\.\.\. \d+ more fields")
"""The text that Spark prints in place of columns that it omits."""


@dataclass
class Step:
    """A step of a plan, with its input steps and the plans of its subqueries."""

    name: str
    text: str
    children: "list[Step]" = field(default_factory=list)
    subqueries: "list[Step]" = field(default_factory=list)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of all columns that the text of the step mentions."""
        return frozenset(map(int, COLUMN_NUMBER.findall(self.text)))

    @cached_property
    def numbers_below(self) -> frozenset[int]:
        """The numbers of all columns that earlier steps mention."""
        return frozenset().union(*(below.numbers | below.numbers_below for below in self.children))


@dataclass(frozen=True)
class Item:
    """A column that a step gives: an expression, its name and its number.

    If the name may begin in several places, `expression` ends at the last of them, and `name`
    begins at the first of them.
    """

    expression: str
    name: str
    id: int
    is_long: bool
    text: str
    """The whole text of the item, without the number."""

    @property
    def is_named(self) -> bool:
        """True for `expression AS name`; False for a column that is passed on unchanged."""
        return self.text != self.name

    @property
    def ambiguous(self) -> str:
        """The part of the text that may belong to the expression or to the name."""
        rest = self.text[len(self.expression) + len(_AS) :] if self.is_named else ""
        return rest if _AS in rest else ""

    @property
    def is_complete(self) -> bool:
        """True if the expression is one column, one call or one pair of brackets."""
        found = _COMPLETE.match(self.expression)
        if found is None:
            return False
        if not found[0].endswith("("):
            return found.end() == len(self.expression)
        return _closing(self.expression, found.end() - 1) == len(self.expression) - 1


def analyzed_plan(explained: str) -> Step | None:
    """Return the analyzed logical plan; None if the text is incomplete."""
    _, found, rest = explained.partition(_ANALYZED)
    plan, is_whole, rest = rest.partition(_OPTIMIZED)
    if not (found and is_whole and _PHYSICAL in rest):
        return None
    lines = [line for line in plan.splitlines() if line.strip()]
    return _tree(lines[1:])  # the first line lists the names and types of all columns


def physical_plan(explained: str) -> list[str]:
    """Return the lines of the physical plan."""
    _, _, plan = explained.partition(_PHYSICAL)
    return [line for line in plan.splitlines() if line.strip()]


def _tree(lines: Sequence[str]) -> Step | None:
    """Return the root of the steps in these lines; None if they do not form one tree."""
    path: list[tuple[int, Step]] = []
    root: Step | None = None
    for line in lines:
        found = _LINE.fullmatch(line)
        if found is None or found[3] in ("'", "!"):  # not resolved, or not valid
            return None
        depth = len(found[1]) // 3 + (found[2] is not None)
        step = Step(found[4], found[5].strip())
        path = [(above, parent) for above, parent in path if above < depth]
        if not path:
            if root is not None or depth:
                return None
            root = step
        else:
            above, parent = path[-1]
            (parent.children if depth == above + 1 else parent.subqueries).append(step)
        path.append((depth, step))
    return root


def lists_in(text: str) -> list[list[str]] | None:
    """Split a text that consists of lists in brackets; None if it contains anything else.

    >>> lists_in("[a#1, f(b#2, c#3) AS d#4L], [a#1 ASC NULLS FIRST]")
    [['a#1', 'f(b#2, c#3) AS d#4L'], ['a#1 ASC NULLS FIRST']]
    >>> lists_in("[a#1], 3") is None
    True
    """
    parts = parts_of(text)
    if parts is None or not all(part[:1] == "[" and part[-1:] == "]" for part in parts):
        return None
    lists = [parts_of(part[1:-1]) for part in parts]
    return [inner for inner in lists if inner is not None] if None not in lists else None


def parts_of(text: str) -> list[str] | None:
    """Split a text at the commas outside of brackets; None if the brackets do not match.

    >>> parts_of("Inner, (a#1 = f(b#2, 3))")
    ['Inner', '(a#1 = f(b#2, 3))']
    """
    parts, start = [], 0
    depths = _depths(text)
    if depths is None:
        return None
    for place, letter in enumerate(text):
        if letter == "," and depths[place] == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _depths(text: str) -> list[int] | None:
    """Return the number of open brackets at each letter; None if the brackets do not match."""
    depths, opened = [], []
    for letter in text:
        if letter in "([{":
            opened.append(letter)
        elif letter in _BRACKETS and (not opened or opened.pop() != _BRACKETS[letter]):
            return None
        depths.append(len(opened))
    return None if opened else depths


def _closing(text: str, start: int) -> int | None:
    """Return the place of the bracket that closes the one at `start`."""
    depths = _depths(text)
    return None if depths is None else depths.index(depths[start] - 1, start)


def items_of(parts: Sequence[str]) -> list[Item] | None:
    """Return the columns of a list, each of which ends with its number; None if one has no number.

    A name may contain commas.

    >>> [(item.expression, item.name, item.id) for item in items_of(["a#1", "f(a#1) AS b", "c#2L"])]
    [('a#1', 'a', 1), ('f(a#1)', 'b, c', 2)]
    """
    items, pending = [], ""
    for part in parts:
        pending = f"{pending}, {part}" if pending else part
        found = _ID.search(pending)
        if found is not None:
            text = pending[: found.start()]
            if text.startswith("AS "):  # the expression is the empty string
                text = f" {text}"
            expression, name = _named(text) or (pending, text)
            items.append(Item(expression, name, int(found[1]), bool(found[2]), text))
            pending = ""
    return None if pending else items


def plain_columns(parts: Sequence[str]) -> dict[int, bool]:
    """Return the numbers of the parts that are one column or sort by one column.

    The value of each number is True if the column is a long.

    >>> plain_columns(["a#1", "b#2L DESC NULLS LAST", "upper(c#3)"])
    {1: False, 2: True}
    """
    numbers = {}
    for part in parts:
        name = _ORDER.sub("", part)
        found = _ID.search(name)
        if found is not None and not set(name[: found.start()]) & set("#( "):
            numbers[int(found[1])] = bool(found[2])
    return numbers


def _named(text: str) -> tuple[str, str] | None:
    """Split `expression AS name`; None if there is no AS.

    Only an AS counts after which all brackets match. The expression is the text before the last
    AS, and the name is the text after the first AS.

    >>> _named("CASE WHEN a#1 THEN known AS x ELSE uuid() END AS v")
    ('CASE WHEN a#1 THEN known AS x ELSE uuid() END', 'x ELSE uuid() END AS v')
    >>> _named("cast(a#1 as int) AS CAST(a AS INT)")
    ('cast(a#1 as int)', 'CAST(a AS INT)')
    """
    places = [found.start() for found in re.finditer(f"(?={_AS})", text)]
    if not places:
        return None
    outside = [n for n in places if _depths(text[n:]) is not None] or places[-1:]
    return text[: outside[-1]], text[outside[0] + len(_AS) :]
