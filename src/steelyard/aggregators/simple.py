"""Count, sum, minimum, maximum, mean, variance."""

import decimal
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.aggregators.base import Aggregator, States, refuse_unless
from steelyard.aggregators.groups import Groups
from steelyard.aggregators.layout import is_number, is_ordered


def _sum_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of Spark's sum of a column."""
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(38, kind.precision + 10), kind.scale)
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


def _as_summed(column: pa.Array) -> pa.Array:
    kind = _sum_type(column.type)
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise OverflowError(
            f"a value does not fit into {kind}, the type of the sum: cast the column to double"
        ) from error


def _sum(column: pa.Array, groups: Groups) -> pa.Array:
    """Return the sums per group in the column's type; raise if a sum does not fit into it."""
    kind = column.type
    try:
        return groups.reduce(_wide_enough(column), "sum").cast(kind)
    except pa.ArrowInvalid as error:
        raise OverflowError(
            f"a sum does not fit into {kind}: cast the column to a wider decimal or to double"
        ) from error


def _wide_enough(column: pa.Array) -> pa.Array:
    """Cast the column to a type in which sums cannot overflow; Arrow does not report overflow."""
    if pa.types.is_floating(column.type) or len(column) == column.null_count:
        return column
    lowest, highest = pc.min_max(column).as_py().values()
    most = max(abs(int(lowest)), abs(int(highest))) + 1
    if pa.types.is_integer(column.type):
        return column if most * len(column) < 2**63 else column.cast(pa.decimal128(38, 0))
    scale = column.type.scale
    fits = most * 10**scale * len(column) < 10**38
    return column if fits else column.cast(pa.decimal256(76, scale))


class _OfNumbers(Aggregator):
    def check(self, schema: pa.Schema) -> None:
        super().check(schema)
        kind = schema.field(self.column).type
        refuse_unless(is_number(kind), self, kind, "numbers")


class Count(Aggregator):
    """The number of rows; with a column, the number of values that are not null."""

    function = "count"

    def __init__(self, column: str | None = None) -> None:
        self.column = column or ""

    @property
    def default_name(self) -> str:
        return f"count({self.column})" if self.column else "count"

    @property
    def columns(self) -> list[str]:
        return [self.column] if self.column else []

    def state(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        return {"count": pa.int64()}

    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        if not self.column:
            return [pa.array(groups.sizes())]
        return [groups.reduce(batch.column(self.column), "count")]

    def merge(self, states: States, groups: Groups) -> States:
        return [_sum(states[0], groups)]

    def result(self, states: States) -> pa.Array:
        return states[0]

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        return pa.int64()


class Sum(_OfNumbers):
    """The sum, or null if all values are null; a long, a double or a decimal, as in Spark."""

    function = "sum"

    def state(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        return {"sum": _sum_type(schema.field(self.column).type)}

    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        column = batch.column(self.column)
        return [_sum(_as_summed(column), groups)]

    def merge(self, states: States, groups: Groups) -> States:
        return [_sum(states[0], groups)]

    def result(self, states: States) -> pa.Array:
        return states[0]

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        return _sum_type(schema.field(self.column).type)


class _Extreme(Aggregator):
    """The minimum or the maximum: the state is the result."""

    how: ClassVar[str]

    def check(self, schema: pa.Schema) -> None:
        super().check(schema)
        kind = schema.field(self.column).type
        refuse_unless(is_ordered(kind), self, kind, "values with an order")

    def state(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        return {self.how: schema.field(self.column).type}

    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        return [self._reduce(batch.column(self.column), groups)]

    def merge(self, states: States, groups: Groups) -> States:
        return [self._reduce(states[0], groups)]

    def _reduce(self, column: pa.Array, groups: Groups) -> pa.Array:
        return groups.reduce(column, self.how).cast(column.type)

    def result(self, states: States) -> pa.Array:
        return states[0]

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        return schema.field(self.column).type


class Min(_Extreme):
    """The least value, or null if all values are null; NaN is above all numbers, as in Spark."""

    function = "min"
    how = "min"


class Max(_Extreme):
    """The greatest value, or null if all values are null; NaN is above all numbers, as in Spark."""

    function = "max"
    how = "max"

    def _reduce(self, column: pa.Array, groups: Groups) -> pa.Array:
        greatest = super()._reduce(column, groups)
        if not pa.types.is_floating(column.type):
            return greatest
        has_nan = groups.reduce(pc.is_nan(column).cast(pa.int8()), "max")
        is_nan = pc.fill_null(pc.equal(has_nan, pa.scalar(1, has_nan.type)), False)
        return pc.if_else(is_nan, pa.scalar(float("nan"), column.type), greatest)


class Mean(_OfNumbers):
    """The mean of the values that are not null: a double, or a decimal with four more digits."""

    function = "avg"

    def state(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        return {"sum": self._sum_type(schema.field(self.column).type), "count": pa.int64()}

    @staticmethod
    def _sum_type(kind: pa.DataType) -> pa.DataType:
        return _sum_type(kind) if pa.types.is_decimal(kind) else pa.float64()

    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        column = batch.column(self.column)
        total = column.cast(self._sum_type(column.type), safe=False)
        return [_sum(total, groups), groups.reduce(column, "count")]

    def merge(self, states: States, groups: Groups) -> States:
        return [_sum(states[0], groups), _sum(states[1], groups)]

    def result(self, states: States) -> pa.Array:
        total, count = states
        if not pa.types.is_decimal(total.type):
            return pc.divide(total, count.cast(pa.float64()))
        kind = pa.decimal128(38, min(38, total.type.scale + 4))
        step = decimal.Decimal(1).scaleb(-kind.scale)
        with decimal.localcontext(prec=80, rounding=decimal.ROUND_HALF_UP):
            means = [
                None if whole is None else (whole / number).quantize(step)
                for whole, number in zip(total.to_pylist(), count.to_pylist(), strict=True)
            ]
        try:
            return pa.array(means, kind)
        except pa.ArrowInvalid as error:
            raise OverflowError(
                f"a mean does not fit into {kind}: cast the column to double"
            ) from error

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        kind = schema.field(self.column).type
        if pa.types.is_decimal(kind):
            return pa.decimal128(min(38, kind.precision + 4), min(38, kind.scale + 4))
        return pa.float64()


class Variance(_OfNumbers):
    """The sample variance, or the population variance, of the values that are not null.

    The result is null without values, and for one value of a sample.
    """

    def __init__(self, column: str, population: bool = False) -> None:
        super().__init__(column)
        self.population = population

    @property
    def default_name(self) -> str:
        return f"{'var_pop' if self.population else 'var_samp'}({self.column})"

    def state(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        return {"count": pa.int64(), "mean": pa.float64(), "squares": pa.float64()}

    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        column = batch.column(self.column).cast(pa.float64(), safe=False)
        counts = column.is_valid().cast(pa.int64())
        return self.merge([counts, column, pa.nulls(len(column), pa.float64())], groups)

    def merge(self, states: States, groups: Groups) -> States:
        counts = states[0].to_numpy()
        means, squares = (pc.fill_null(part, 0.0).to_numpy() for part in states[1:])
        total = np.bincount(groups.ids, counts, groups.count)
        divisor = np.maximum(total, 1)
        mean = np.bincount(groups.ids, counts * means, groups.count) / divisor
        # The sums of squares are around the means of the parts; move them to the common mean.
        with np.errstate(invalid="ignore"):  # the variance of infinite values is NaN
            apart = np.where(counts > 0, means - mean[groups.ids], 0.0)
        moved = np.bincount(groups.ids, squares + counts * apart**2, groups.count)
        return [pa.array(total.astype(np.int64)), pa.array(mean), pa.array(moved)]

    def result(self, states: States) -> pa.Array:
        counts, squares = states[0].to_numpy(), states[2].to_numpy()
        freedom = counts if self.population else counts - 1
        return pa.array(squares / np.maximum(freedom, 1), mask=freedom < 1)

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        return pa.float64()
