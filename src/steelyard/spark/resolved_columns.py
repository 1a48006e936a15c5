"""Find the key, the weight and the salt that a user writes among the columns of a frame.

A frame and what the user writes enter; names of columns leave. A key may be a name, also in another
case or with dots, or any expression that Spark can group by. All forms of a key have the same
result.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StructField

from steelyard.printable import printable
from steelyard.spark.columns import (
    Key,
    hidden,
    named,
    require_distinct_names,
    require_hash,
    require_key_type,
    require_names,
)
from steelyard.spark.failures import sentence_of
from steelyard.spark.retries.known_functions import BY_POSITION
from steelyard.spark.retries.repeated import Repeated, repeated
from steelyard.spark.retries.rows import Kind
from steelyard.spark.retries.traced_step import calls_in
from steelyard.spark.salts import Salts

_NUMBER = re.compile(r"#(\d+)L?(?:-T\d+ms)?")
"""The number of a column in the text of a plan."""

_PLAIN = re.compile(r"[^#(]*" + _NUMBER.pattern)
"""One column and nothing else."""


@dataclass(frozen=True, eq=False)
class ResolvedColumns:
    """The columns of a frame that the arguments of a call name.

    A key, weight or salt that is not a column of the frame, but a field of one or an expression, is
    a temporary column of `wide`. Names are names of columns of `wide`.
    """

    frame: DataFrame
    """The frame of the user."""
    key: tuple[str, ...]
    results: tuple[str, ...]
    """The names of the key columns in results, as `DataFrame.groupBy` gives them."""
    texts: tuple[str, ...] | None
    """The key as text, the same for all its forms; None if Spark does not show it."""
    weight: str | None
    salt: tuple[str, ...] | None
    computed: Mapping[str, Column]
    """The expressions of the temporary columns."""

    @classmethod
    def of(
        cls,
        frame: DataFrame,
        key: Sequence[str | Column],
        *,
        weight: str | None = None,
        salt: Sequence[str] | None = None,
        argument: str = "key",
    ) -> "ResolvedColumns":
        """Find what a user writes among the columns of a frame; no job runs.

        Args:
            frame: The frame.
            key: The key: names of columns, or expressions.
            weight: The name of the column with the weight of each row, or None.
            salt: The names of the columns that distinguish rows of one key; None to choose them.
            argument: The name of the argument `key` in errors.

        Returns:
            The columns.

        Raises:
            TypeError: An argument is neither a name nor, for `key`, a `Column`.
            ValueError: The frame has no such column, Spark cannot group by an expression, a type is
                not allowed, or an expression of the key is random.

        >>> rows = spark.sql("SELECT 'Home' AS page, named_struct('id', 7) AS user")
        >>> found = ResolvedColumns.of(rows, ["PAGE", "user.id", F.lower("page").alias("x")])
        >>> found.results, found.texts
        (('PAGE', 'id', 'x'), ('page', 'user.id', 'lower(page)'))
        >>> found.key[0], found.wide.columns == ["page", "user", *found.key[1:]]
        ('page', True)
        """
        require_key_parts(argument, key)
        require_distinct_names(frame)
        computed: dict[str, Column] = {}
        parts = [_key_part(frame, argument, i, part, computed) for i, part in enumerate(key)]
        found = cls(
            frame,
            tuple(name for name, _ in parts),
            tuple(result for _, result in parts),
            tuple(name for name, _ in parts),
            *named_columns(frame, weight, salt, computed),
            computed,
        )
        return found._judged(argument, key) if set(found.key) & computed.keys() else found

    @cached_property
    def wide(self) -> DataFrame:
        """The frame, with a temporary column for each expression."""
        return self.frame.withColumns(dict(self.computed)) if self.computed else self.frame

    @cached_property
    def repeated(self) -> Repeated:
        """The properties of `wide` across task retries."""
        return repeated(self.wide)

    @property
    def in_order(self) -> bool:
        """True if rows keep their order, and the key and the weight are deterministic."""
        return self.repeated.in_order_by([*self.key, *([self.weight] if self.weight else [])])

    def hashed_key(self, buckets: int) -> Key:
        """Return the key of `wide`."""
        return Key(self.key, buckets, self.results)

    def computed_key(self, buckets: int) -> Key:
        """Return the key as expressions of the columns of `frame`."""
        return Key(self.key, buckets, self.results, self.computed)

    def salts(self) -> Salts:
        """Return the columns that distinguish rows of one key."""
        salts = Salts.of(self.wide, self.salt, self.key, self.repeated)
        return replace(salts, computed=self.computed)

    def _judged(self, argument: str, written: Sequence[str | Column]) -> "ResolvedColumns":
        """Name expressions that are plain columns by these, and refuse random ones."""
        facts, names, texts = self.repeated, [], []
        for name, part in zip(self.key, written, strict=True):
            expression = facts.expressions.get(name, "")
            plain = _PLAIN.fullmatch(expression)
            own = facts.numbers.get(int(plain[1])) if plain else None
            is_new = name in self.computed and own is None
            random = _random_part(facts, name, expression or _described(part)) if is_new else None
            if random is not None:
                raise ValueError(
                    f"{argument}: {_described(part)} comes from {random}; its value may differ "
                    "after a task retry, and rows would be lost or duplicated: use a deterministic "
                    "expression"
                )
            names.append(own or name)
            texts.append(_text_of(facts, expression) if is_new else names[-1])
        used = {*names, self.weight, *(self.salt or ())}
        computed = {name: column for name, column in self.computed.items() if name in used}
        known = tuple(texts) if all(texts) else None
        found = replace(self, key=tuple(names), texts=known, computed=computed)
        # The facts about `wide` hold for a frame with fewer temporary columns, too.
        found.__dict__["repeated"] = facts
        return found


def require_key_parts(argument: str, key: Sequence[str | Column]) -> None:
    """Refuse a key that does not consist of names and expressions."""
    names = [part for part in key if not isinstance(part, Column)]
    if names or not key:
        try:
            require_names(argument, names)
        except TypeError as error:
            raise TypeError(
                str(error).replace("column names,", "column names or Columns,")
            ) from None


def column_named(frame: DataFrame, argument: str, name: str) -> Column:
    """Return the column of a name, or the field of a column, as in `user.id`."""
    own = own_name(frame, name)
    if own is None:
        _field(frame, argument, name)  # refuses a name that is neither
    return F.col(name) if own is None else named(own)


def column_code(found: ResolvedColumns, key: str) -> str:
    """Return Python code for a computed column of the key; an ellipsis if no code is known.

    >>> rows = spark.sql("SELECT 'Home' AS page, named_struct('id', 7) AS user")
    >>> def code_of(key):
    ...     found = ResolvedColumns.of(rows, [key])
    ...     return column_code(found, found.key[0])
    >>> [code_of(key) for key in ("user.id", F.lower("page"), F.concat("page", F.lit("page")))]
    ['F.col("user.id")', 'F.expr("lower(page)")', '...']
    """
    text = (found.texts or found.results)[found.key.index(key)]
    tried = hidden("code", "tried")
    for call, made in {"F.col": F.col, "F.expr": F.expr}.items():
        with suppress(PySparkException):  # the text is no name, or no SQL
            both = found.frame.withColumns({key: found.computed[key], tried: made(text)})
            found_as = repeated(both).expressions
            if key in found_as and found_as[key].lower() == found_as.get(tried, "").lower():
                return f"{call}({printable(json.dumps(text, ensure_ascii=False))})"
    return "..."


def named_columns(
    frame: DataFrame,
    weight: str | None,
    salt: Sequence[str] | None,
    computed: dict[str, Column],
) -> tuple[str | None, tuple[str, ...] | None]:
    """Find the weight and the salt, which may be fields or in another case.

    Args:
        frame: The frame.
        weight: The name of the column with the weight of each row, or None.
        salt: The names of the columns that distinguish rows of one key; None to choose them.
        computed: Gets the expressions of the columns that the frame lacks.

    Returns:
        The names of both in a frame with these columns.

    Raises:
        ValueError: The frame has no such column, or a type is not allowed.
    """
    return (
        None if weight is None else _weight(frame, weight, computed),
        None if salt is None else tuple(_salts(frame, salt, computed)),
    )


def of_command_line(frame: DataFrame, written: str) -> str | Column:
    """Return a key as written on the command line: a column, or else an expression of SQL.

    >>> rows = spark.range(3)
    >>> of_command_line(rows, "ID"), of_command_line(rows, "id % 2")
    ('ID', Column<...>)
    """
    if own_name(frame, written) is not None or _field_of(frame, written) is not None:
        return written
    try:
        column = F.expr(written)
        _ = frame.select(column).schema
    except PySparkException as error:
        known = ", ".join(frame.columns)
        raise ValueError(
            f"key: {written!r} is neither a column nor an expression; the columns are {known}"
        ) from error
    return column


def own_name(frame: DataFrame, written: str) -> str | None:
    """Return the column of this name; Spark may ignore the case of names."""
    if written in frame.columns:
        return written
    if frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true":
        return None
    return next((name for name in frame.columns if name.lower() == written.lower()), None)


def _key_part(
    frame: DataFrame, argument: str, place: int, written: str | Column, computed: dict[str, Column]
) -> tuple[str, str]:
    """Return the name of a part of the key in `wide`, and its name in results."""
    own = own_name(frame, written) if isinstance(written, str) else None
    if own is not None:
        require_key_type(argument, own, frame.schema[own].dataType)
        return own, str(written)
    field = _field(frame, argument, written)
    require_key_type(argument, field.name, field.dataType)
    column = F.col(written) if isinstance(written, str) else written
    name = hidden(f"key{place}", field.name)
    _require_one_value(frame, argument, written, column.alias(name))
    computed[name] = column
    return name, field.name


def _weight(frame: DataFrame, weight: str, computed: dict[str, Column]) -> str:
    require_names("weight", [weight])
    name, field = _named_field(frame, "weight", weight, computed)
    if not isinstance(field.dataType, NumericType):
        found = field.dataType.simpleString()
        raise ValueError(f"weight: column {weight!r} must hold numbers, got {found}")  # noqa: TRY004
    return name


def _salts(frame: DataFrame, salt: Sequence[str], computed: dict[str, Column]) -> Iterator[str]:
    require_names("salt", salt)
    for written in salt:
        name, field = _named_field(frame, "salt", written, computed)
        require_hash("salt", written, field.dataType)
        yield name


def _named_field(
    frame: DataFrame, argument: str, written: str, computed: dict[str, Column]
) -> tuple[str, StructField]:
    """Return the name of a column, or of a field of a column, in `wide`, and its type."""
    own = own_name(frame, written)
    if own is not None:
        return own, frame.schema[own]
    field, name = _field(frame, argument, written), hidden(argument, written)
    computed[name] = F.col(written)
    return name, field


def _field(frame: DataFrame, argument: str, written: str | Column) -> StructField:
    """Return the name and the type of an expression; refuse what Spark cannot analyze."""
    if isinstance(written, str):
        found = _field_of(frame, written)
        if found is None:
            known = ", ".join(frame.columns)
            raise ValueError(f"{argument}: there is no column {written!r}; the columns are {known}")
        return found
    try:
        fields = frame.select(written).schema.fields
    except PySparkException as error:
        raise ValueError(
            f"{argument}: Spark cannot compute {_described(written)}: {sentence_of(str(error))}"
        ) from error
    if len(fields) != 1:
        raise ValueError(
            f"{argument}: {_described(written)} must be one column, got {len(fields)} columns"
        )
    return fields[0]


def _field_of(frame: DataFrame, name: str) -> StructField | None:
    """Return the column that Spark finds by a name such as `user.id`; None if there is none."""
    if not {".", "`"} & set(name):
        return None
    try:
        fields = frame.select(F.col(name)).schema.fields
    except PySparkException:
        return None
    return fields[0] if len(fields) == 1 and "*" not in name else None


def _require_one_value(
    frame: DataFrame, argument: str, written: str | Column, column: Column
) -> None:
    """Refuse an expression that has no value of its own for each row."""
    try:
        _ = frame.groupBy(column).count().schema
    except PySparkException as error:
        raise ValueError(
            f"{argument}: {_described(written)} must be computed from one row, and aggregates, "
            "window functions and generators are not"
        ) from error


def _random_part(facts: Repeated, name: str, expression: str) -> str | None:
    """Return what makes a new column random; None if it is not."""
    for number, column in facts.numbers.items():
        expression = expression.replace(f"{column}#{number}", "")  # it may resemble a call
    called = next((call for call in calls_in(expression) if call in BY_POSITION), None)
    if called is not None:
        return f"{called}()"
    doubt = facts.doubts.get(name)
    return doubt.why if doubt is not None and doubt.kind is Kind.RANDOM else None


def _text_of(facts: Repeated, expression: str) -> str:
    """Return an expression without the numbers of columns, and with the names of the frame."""
    for number, column in facts.numbers.items():
        pattern = rf"{re.escape(column)}#{number}(?!\d)"
        own = column.replace("\\", "\\\\")  # the name as a replacement
        expression = re.sub(pattern, own, expression, flags=re.IGNORECASE)
    return _NUMBER.sub("", expression)


def _described(written: str | Column) -> str:
    return repr(written) if isinstance(written, str) else str(written)
