"""What the steps of a plan make of rows that are, or are not, the same when a task is run again.

What is known of the inputs of a step enters; what is known of its result leaves. A value is sure if
it is made row by row, by functions that are known, from values that are sure; or from many rows, by
an aggregate for which their order is nothing. Where only some rows are kept, and which ones depends
on their order, those columns are sure that the kept rows have in common with the others.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType

from steelyard.spark.retries.known_functions import (
    AGGREGATES,
    BY_ORDER,
    BY_POSITION,
    FUNCTIONS,
    GENERATORS,
    RANKS,
)
from steelyard.spark.retries.plan_text import (
    Item,
    Step,
    items_of,
    lists_in,
    parts_of,
    plain_columns,
)
from steelyard.spark.retries.rows import UNSEEN, Doubt, Kind, Rows, Varies, given, joined, worst

_NUMBER = re.compile(r"#(\d+)")

_CALL = re.compile(r"([^\s(),\[\]]*\w[^\s(),\[\]]*)\(")

_PYTHON = re.compile(r"\)#\d")
"""A call of a Python function has a number behind it."""

_PLAIN = re.compile(r"[^#(]*#(\d+)L?(?:-T\d+ms)?")
"""A column and nothing else."""

_VARIABLE = re.compile(r"lambda \w+#\d+L?")

_SUBQUERY = re.compile(r"(?:scalar-subquery|exists|list)#\d+")

_SUM = re.compile(r"sum\(.*\)(?: FILTER \(WHERE .*\))?")

_WHOLE_FRAME = re.compile(
    r"specifiedwindowframe\((RangeFrame|RowFrame, unboundedpreceding\$\(\), unboundedfollowing)"
)
"""Frames that take rows of equal order together."""


@dataclass
class At:
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
        """All of them."""
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
        numbers = sorted({int(number) for number in _NUMBER.findall(expression)})
        if self.outer is not None:
            sure = {n for n in numbers if n not in rows.names and self.outer.doubt(n) is None}
            numbers = [number for number in numbers if number not in sure]
        return [*doubts, *filter(None, map(rows.doubt, numbers))]

    def _subqueries_are_sure(self) -> bool:
        plans = self.step.subqueries
        found = [self.follow(plan, joined(self.inputs)) for plan in plans]
        return bool(plans) and all(rows.are_sure for rows in found)


# What steps make of their inputs. None: the text of the step is not what it should be.


def _pass(at: At) -> Rows | None:
    return at.rows


def _last(at: At) -> Rows | None:
    return at.inputs[-1]


def _made(at: At, items: Sequence[Item], doubt_about: Callable[[Item], Doubt | None]) -> Rows:
    """New columns, and old ones that are only passed on."""
    doubts = {}
    for item in items:
        if item.id in at.rows.names:
            doubt = at.rows.doubt(item.id)
        else:
            doubt = doubt_about(item)
            if doubt is not None and not _PLAIN.fullmatch(item.expression):
                doubt = doubt.beyond()
        if doubt is not None:
            doubts[item.id] = doubt
    made = replace(given(items), doubts=doubts, varies=at.rows.varies, ordered=at.rows.ordered)
    return _renamed(made, items)


def _renamed(rows: Rows, items: Sequence[Item]) -> Rows:
    """Ranks go with the columns that they belong to under their new numbers."""
    now: dict[int, int] = {}
    for item in items:
        found = _PLAIN.fullmatch(item.expression)
        if found is not None:
            now[int(found[1])] = item.id
    doubts = {
        number: replace(doubt, among=frozenset(now[n] for n in doubt.among if n in now))
        if doubt.among
        else doubt
        for number, doubt in rows.doubts.items()
    }
    return replace(rows, doubts=doubts)


def _project(at: At) -> Rows | None:
    lists = lists_in(at.step.text)
    items = items_of(lists[0]) if lists and len(lists) == 1 else None
    if items is None:
        return None
    return _made(at, items, lambda item: at.doubt(item.expression))


def _filter(at: At) -> Rows | None:
    doubts = at.doubts(at.step.text)
    doubt = worst(doubts)
    if doubt is None:
        return at.rows
    if doubt.among is None:
        return replace(at.rows, varies=max(at.rows.varies, Varies.ALONE), ordered=False)
    # Which row has a rank is not sure. What all those have in common that may have it is.
    numbers = {int(number) for number in _NUMBER.findall(at.step.text)}
    others = {number for number in numbers if at.rows.doubt(number) is None}
    is_sure = len(doubts) == 1 and others <= doubt.among
    return _kept_by_order(at.rows, doubt, doubt.among if is_sure else frozenset())


def _kept_by_order(rows: Rows, doubt: Doubt, common: frozenset[int]) -> Rows:
    """Some rows are left out, and only these columns of those that stay are sure."""
    is_sure = bool(common) and rows.varies is Varies.NOT and rows.about(common) is None
    kept = rows.doubted(replace(doubt, among=None), common if is_sure else ())
    return replace(kept, varies=Varies.NOT if is_sure else Varies.TOGETHER)


def _aggregate(at: At) -> Rows | None:
    lists = lists_in(at.step.text)
    if not lists or len(lists) > 2:
        return None
    items = items_of(lists[-1])
    if items is None:
        return None
    groups = at.doubt(", ".join(lists[0])) if len(lists) == 2 else None
    return _made(at, items, lambda item: _aggregated(at, item, groups)).shuffled(by=groups)


def _aggregated(at: At, item: Item, groups: Doubt | None = None) -> Doubt | None:
    """The doubt about what is made of the rows of a group: a key of theirs, or an aggregate."""
    doubt = at.doubt(item.expression)
    if doubt is None:
        return None  # made of keys alone
    if groups is not None or at.rows.varies is Varies.TOGETHER:
        return Doubt("an aggregate of rows that may be others", among=frozenset())
    more = AGGREGATES
    if _SUM.fullmatch(item.expression):
        kind = at.kinds.get(item.id)
        is_decimal = isinstance(kind, DecimalType) and kind.precision < 38
        if isinstance(kind, FloatType | DoubleType):
            return Doubt("sum() of fractions", Kind.ORDER)
        if item.is_long or is_decimal:
            more |= {"sum"}
    doubt = at.doubt(item.expression, more)
    if doubt is None and at.rows.varies is not Varies.NOT:
        return Doubt("an aggregate of rows that may be others")
    return doubt


def _window(at: At) -> Rows | None:
    lists = lists_in(at.step.text)
    if not lists or len(lists) > 3:
        return None
    items = items_of(lists[0])
    if items is None or at.rows.ids is None:
        return None
    belongs = frozenset().union(*map(plain_columns, lists[1:]))
    about = at.rows.about(belongs)
    ranked = belongs if about is None and at.rows.varies is Varies.NOT else frozenset[int]()
    doubts = {item.id: _over_window(at, item, ranked) for item in items}
    return replace(
        at.rows,
        ids=at.rows.ids + tuple(doubts),
        doubts=dict(at.rows.doubts)
        | {n: doubt for n, doubt in doubts.items() if doubt is not None},
        names=dict(at.rows.names) | {item.id: item.name for item in items},
        ordered=False,
    )


def _over_window(at: At, item: Item, ranked: frozenset[int]) -> Doubt | None:
    function, found, window = item.expression.partition(" windowspecdefinition")
    name = function.partition("(")[0].lower()
    if not found:
        return Doubt("a window", among=frozenset())
    spec = re.sub(r"\w+\$?\(", "(", window)
    if name == "row_number":
        return Doubt("row_number()", Kind.ORDER, ranked)
    is_whole = name in RANKS or _WHOLE_FRAME.search(window) is not None
    doubt = _aggregated(at, replace(item, expression=function)) if name not in RANKS else None
    doubt = doubt or at.rows.about({int(n) for n in _NUMBER.findall(function + spec)})
    if doubt is None and is_whole and at.rows.varies is Varies.NOT:
        return None
    return Doubt(f"{name}()", Kind.ORDER, frozenset())


def _generate(at: At) -> Rows | None:
    parts = parts_of(at.step.text)
    if not parts or at.rows.ids is None or not parts[-1].startswith("["):
        return None
    items = items_of(parts_of(parts[-1][1:-1]) or [])
    if items is None:
        return None
    doubt = at.doubt(parts[0], GENERATORS)
    new = given(items)
    made = replace(
        at.rows,
        ids=at.rows.ids + (new.ids or ()),
        names=dict(at.rows.names) | dict(new.names),
    )
    if doubt is None:
        return made
    doubts = dict(at.rows.doubts) | dict.fromkeys(new.names, doubt)
    return replace(made, doubts=doubts, varies=max(made.varies, Varies.ALONE), ordered=False)


def _expand(at: At) -> Rows | None:
    """Every row several times, with other values of some columns each time."""
    lists = lists_in(at.step.text)
    items = items_of(lists[-1]) if lists and len(lists) == 2 else None
    if items is None or lists is None:
        return None
    doubts: dict[int, Doubt] = {}
    for values in lists[0]:
        parts = parts_of(values[1:-1])
        if parts is None or len(parts) != len(items):
            return None
        for item, part in zip(items, parts, strict=True):
            doubt = at.doubt(part)
            if doubt is not None:
                doubts[item.id] = doubt
    return replace(given(items), doubts=doubts, varies=at.rows.varies)


def _join(at: At) -> Rows | None:
    how, *rest = parts_of(at.step.text) or [""]
    left, right = at.inputs
    condition = ", ".join(part for part in rest if "Hint=" not in part)
    doubt = at.doubt(condition)
    both = joined(at.inputs)
    together = next((r for r in at.inputs if r.varies is Varies.TOGETHER), None)
    if doubt is not None or together is not None:
        return replace(
            both.doubted(doubt or Doubt("a join with rows that may be others")),
            varies=Varies.TOGETHER,
        )
    if how in ("LeftSemi", "LeftAnti"):
        return replace(left, varies=both.varies, ordered=False)
    if how not in ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter"):
        return None
    # A row whose partner may be missing has nulls in its place.
    missing = Doubt("an outer join with rows that may be missing")
    doubts = dict(both.doubts)
    for side, outer in ((left, ("RightOuter", "FullOuter")), (right, ("LeftOuter", "FullOuter"))):
        if how in outer and side.varies is not Varies.NOT:
            doubts |= dict.fromkeys(side.names, missing)
    return replace(both, doubts=doubts)


def _union(at: At) -> Rows | None:
    first, *others = at.inputs
    if not others or any(rows.ids is None for rows in at.inputs):
        return _of_ranges(at)
    assert first.ids is not None
    doubts = dict(first.doubts)
    for rows in others:
        if rows.ids is None or len(rows.ids) != len(first.ids):
            return None
        for mine, theirs in zip(first.ids, rows.ids, strict=True):
            doubt = rows.doubt(theirs)
            if doubt is not None:
                doubts[mine] = worst([doubt, doubts.get(mine, doubt)]) or doubt
    return replace(
        first,
        doubts=doubts,
        varies=max(rows.varies for rows in at.inputs),
        ordered=all(rows.ordered for rows in at.inputs),
    )


def _of_ranges(at: At) -> Rows | None:
    """Ranges do not tell their numbers, and have nothing that could differ."""
    is_sure = bool(at.inputs) and all(
        rows.others is None and not rows.doubts and rows.varies is Varies.NOT for rows in at.inputs
    )
    return replace(at.rows, ordered=all(r.ordered for r in at.inputs)) if is_sure else None


def _deduplicate(at: At) -> Rows | None:
    lists = lists_in(at.step.text)
    if not lists or len(lists) != 1:
        return None
    keys = items_of(lists[0])
    if keys is None:
        return None
    numbers = {item.id for item in keys}
    doubt = Doubt("dropDuplicates, which keeps any row of those that are alike", Kind.ORDER)
    kept = at.rows.doubted(doubt, but=numbers)
    return kept.shuffled(by=at.rows.about(numbers))


def _distinct(at: At) -> Rows | None:
    return at.rows.shuffled(by=_any_doubt(at.rows))


def _any_doubt(rows: Rows) -> Doubt | None:
    return next(iter(rows.doubts.values()), rows.others if rows.ids is None else None)


def _compare_sets(at: At) -> Rows | None:
    if not all(rows.are_sure for rows in at.inputs):
        doubted = at.rows.doubted(Doubt("a comparison with rows that may be others"))
        return replace(doubted, varies=Varies.TOGETHER)
    return at.rows.shuffled()


def _sort(at: At) -> Rows | None:
    lists = parts_of(at.step.text)
    return None if not lists else at.rows.shuffled(by=at.doubt(lists[0]))


def _repartition(at: At) -> Rows | None:
    return at.rows.shuffled(by=_any_doubt(at.rows))


def _sample(at: At) -> Rows | None:
    if at.rows.ordered:
        return at.rows
    return replace(at.rows, varies=max(at.rows.varies, Varies.ALONE))


def _limit(at: At) -> Rows | None:
    """The first rows of a sorted frame have the same values to sort by; others nothing."""
    child = at.step.children[0]
    if child.name == "LocalLimit":
        child = child.children[0] if len(child.children) == 1 else child
    common: frozenset[int] = frozenset()
    if child.name == "Sort":
        parts = parts_of(child.text)
        lists = lists_in(parts[0]) if parts and parts[-1] == "true" else None
        common = plain_columns(lists[0]) if lists else common
    rows = at.follow(child, at.outer)
    return _kept_by_order(rows, Doubt("limit"), common)


def _watermark(at: At) -> Rows | None:
    """Late rows are left out behind it, by a time that must be sure."""
    found = _NUMBER.search(at.step.text)
    doubt = at.rows.doubt(int(found[1])) if found else UNSEEN
    if doubt is None:
        return at.rows
    return replace(at.rows.doubted(replace(doubt, among=None)), varies=Varies.TOGETHER)


KEEP_ROWS = {
    "CollectMetrics",
    "Project",
    "RebalancePartitions",
    "Repartition",
    "RepartitionByExpression",
    "ResolvedHint",
    "Sort",
    "SubqueryAlias",
    "View",
    "Window",
}
"""Steps behind which every row is there once."""

STEPS: dict[str, Callable[[At], Rows | None]] = {
    "Aggregate": _aggregate,
    "CTERelationDef": _pass,
    "CollectMetrics": _pass,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Distinct": _distinct,
    "EventTimeWatermark": _watermark,
    "Except": _compare_sets,
    "Expand": _expand,
    "Filter": _filter,
    "Generate": _generate,
    "GlobalLimit": _limit,
    "Intersect": _compare_sets,
    "Join": _join,
    "LocalLimit": _limit,
    "Offset": _limit,
    "Project": _project,
    "RebalancePartitions": _repartition,
    "Repartition": _repartition,
    "RepartitionByExpression": _sort,
    "ResolvedHint": _pass,
    "Sample": _sample,
    "Sort": _sort,
    "SubqueryAlias": _pass,
    "Tail": _limit,
    "Union": _union,
    "View": _pass,
    "Window": _window,
    "WithCTE": _last,
    "WriteToMicroBatchDataSourceV1": _pass,
}
