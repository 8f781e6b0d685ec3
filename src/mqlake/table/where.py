"""Filters written as (column, operator, value), as in PyArrow's Parquet reader and in Delta.

Each is applied exactly. Filters that limit the part of the log to read are also pushed down.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import datetime as dt
import importlib
import operator
from collections.abc import Collection, Iterable
from functools import reduce
from typing import Any, NamedTuple, cast

import pyarrow as pa

from mqlake.errors import FormatError
from mqlake.query.reading.bounds import MESSAGES, any_of, between
from mqlake.query.reading.conditions import Condition, Selection
from mqlake.query.reading.parsing import nearest
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.columns import check_columns
from mqlake.table.given_options import milliseconds

compute: Any = importlib.import_module("pyarrow.compute")  # Its functions are created at run time.

Filter = tuple[str, str, Any]
"""Column, operator, value: `("storeTimestamp", ">=", datetime)`, `("topic", "in", ["A", "B"])`."""

_COMPARISONS = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PARTS = 3
_OPERATORS = (*_COMPARISONS, "in", "not in")


class Where(NamedTuple):
    """Filters that must all hold.

    Attributes:
        pushed: conditions that limit what is read.
        expression: a `pyarrow.compute.Expression` that selects rows; None if there are no filters.
        columns: the columns that the expression reads.
    """

    pushed: Selection
    expression: Any
    columns: frozenset[str]


def parse_filters(filters: Iterable[Filter]) -> Where:
    """Return the conditions and the expression of filters.

    Raises:
        FormatError: a column or an operator does not exist, or a value has another type.
    """
    parsed = [_parse(*one) for one in _checked(filters)]
    pushed = tuple(condition for _, _, condition in parsed if condition is not None)
    expressions = [expression for _, expression, _ in parsed]
    columns = frozenset(column for column, _, _ in parsed)
    return Where(pushed, reduce(operator.and_, expressions) if expressions else None, columns)


def _checked(filters: object) -> list[Filter]:
    """Return filters, each of which has three parts.

    Raises:
        FormatError: they are something else, such as one filter alone or a condition in SQL.
    """
    is_listed = isinstance(filters, Iterable) and not isinstance(filters, str)
    listed: list[Any] = list(cast("Iterable[Any]", filters)) if is_listed else []
    if not is_listed or not all(map(_has_parts, listed)):
        raise FormatError(
            f'where={filters!r} is not a list of filters, such as [("topic", "=", "Orders")]'
        )
    return listed


def _has_parts(one: Any) -> bool:
    return isinstance(one, list | tuple) and len(one) == _PARTS


def _parse(name: str, comparison: str, value: Any) -> tuple[str, Any, Condition | None]:
    (column,) = check_columns([name])
    field = compute.field(column)
    if comparison in ("in", "not in"):
        if isinstance(value, str | bytes) or not isinstance(value, Collection):
            raise FormatError(f"filter on {column}: {comparison} needs a list, not {value!r}")
        values = [_value(column, one) for one in value]
        found = field.isin(pa.array(values, _type_of(column)))
        if comparison == "in":
            return column, found, any_of(MESSAGES, (column,), values)
        return column, ~found & field.is_valid(), None
    if comparison not in _COMPARISONS:
        near = nearest(comparison, _OPERATORS)
        raise FormatError(
            f"filter on {column}: operator {comparison!r} does not exist; the nearest match is "
            f"{near}"
        )
    checked = _value(column, value)
    expression = _COMPARISONS[comparison](field, pa.scalar(checked, _type_of(column)))
    return column, expression, _condition(column, comparison, checked)


def _condition(column: str, comparison: str, value: Any) -> Condition | None:
    path = (column,)
    if comparison in ("=", "=="):
        return any_of(MESSAGES, path, [value])
    if comparison in (">", ">="):
        return between(MESSAGES, path, low=value, is_open=comparison == ">")
    if comparison in ("<", "<="):
        return between(MESSAGES, path, high=value, is_open=comparison == "<")
    return None


def _type_of(column: str) -> Any:
    return arrow_schema([column]).field(0).type


def _value(column: str, value: Any) -> Any:
    """Return a value as the column's type; times in milliseconds become datetimes."""
    kind = _type_of(column)
    if pa.types.is_timestamp(kind):
        if isinstance(value, dt.datetime):
            milliseconds(f"filter on {column}", value)
            return value
        if type(value) is int:
            try:
                return _EPOCH + dt.timedelta(milliseconds=value)
            except OverflowError:
                raise FormatError(
                    f"filter on {column}: {value} milliseconds are after the year 9999 or before "
                    "the year 1; give milliseconds since 1970"
                ) from None
    try:
        made = pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise FormatError(f"filter on {column}: {value!r} is not a value of type {kind}") from None
    if not made.is_valid:
        raise FormatError(f"filter on {column}: no value equals null; filter the result instead")
    return value


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
