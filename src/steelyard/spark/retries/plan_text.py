"""The plan of a frame, read from the text of EXPLAIN.

Text enters; a tree of steps leaves, with the expressions of each step still as text. What cannot be
read is None: nobody may conclude anything from it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_ANALYZED, _OPTIMIZED = "== Analyzed Logical Plan ==", "== Optimized Logical Plan =="
_PHYSICAL = "== Physical Plan =="

_LINE = re.compile(r"((?:   |:  )*)(\+- |:- )?([~'!]?)(\w+)(.*)")

_ID = re.compile(r"#(\d+)(L?)(?:-T\d+ms)?$")

_ORDER = re.compile(r" (?:ASC|DESC) NULLS (?:FIRST|LAST)$")

CUT = re.compile(r"\.\.\. \d+ more fields")
"""Where Spark leaves columns out."""


@dataclass
class Step:
    """A step of a plan, the steps before it, and the plans of the subqueries in it."""

    name: str
    text: str
    children: "list[Step]" = field(default_factory=list)
    subqueries: "list[Step]" = field(default_factory=list)


@dataclass(frozen=True)
class Item:
    """A column that a step gives: an expression, its name and its number."""

    expression: str
    name: str
    id: int
    is_long: bool


def analyzed_plan(explained: str) -> Step | None:
    """The plan as the user wrote it, with names resolved; None if the text is not all there."""
    _, found, rest = explained.partition(_ANALYZED)
    plan, is_whole, rest = rest.partition(_OPTIMIZED)
    if not (found and is_whole and _PHYSICAL in rest):
        return None
    lines = [line for line in plan.splitlines() if line.strip()]
    return _tree(lines[1:])  # the first one has the names and types of all columns


def physical_plan(explained: str) -> list[str]:
    """The lines of the plan that runs."""
    _, _, plan = explained.partition(_PHYSICAL)
    return [line for line in plan.splitlines() if line.strip()]


def _tree(lines: Sequence[str]) -> Step | None:
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
    """The parts of every list in brackets, of a text that consists of them; None if it does not.

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
    """What commas outside of all brackets separate; None if the brackets do not match.

    >>> parts_of("Inner, (a#1 = f(b#2, 3))")
    ['Inner', '(a#1 = f(b#2, 3))']
    """
    parts, start, depth = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth < 0:
                return None
        elif letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    if depth:
        return None
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def items_of(parts: Sequence[str]) -> list[Item] | None:
    """Columns, each of which ends with its number; a name may have commas in it.

    >>> [(item.expression, item.name, item.id) for item in items_of(["a#1", "f(a#1) AS b", "c#2L"])]
    [('a#1', 'a', 1), ('f(a#1)', 'b, c', 2)]
    """
    items, waiting = [], ""
    for part in parts:
        waiting = f"{waiting}, {part}" if waiting else part
        found = _ID.search(waiting)
        if found is not None:
            expression, alias, name = _alias(waiting[: found.start()])
            items.append(
                Item(
                    expression if alias else waiting,
                    name if alias else expression,
                    int(found[1]),
                    bool(found[2]),
                )
            )
            waiting = ""
    return None if waiting else items


def plain_columns(parts: Sequence[str]) -> frozenset[int]:
    """The numbers of those parts that are a column and nothing else, or are sorted by one."""
    numbers = set()
    for part in parts:
        name = _ORDER.sub("", part)
        found = _ID.search(name)
        if found is not None and not set(name[: found.start()]) & set("#("):
            numbers.add(int(found[1]))
    return frozenset(numbers)


def _alias(text: str) -> tuple[str, str, str]:
    """What is before and behind the first AS that is outside of all brackets."""
    start = 0
    while True:
        place = text.find(" AS ", start)
        if place < 0:
            return text, "", ""
        before = text[:place]
        if sum(map(before.count, "([{")) == sum(map(before.count, ")]}")):
            return before, " AS ", text[place + 4 :]
        start = place + 4
