"""Conditions from the values and bounds that an engine's filters compare columns with.

The engine applies all filters again, so a condition may let more through than its filter.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from mqlake.query.reading.conditions import (
    MOST,
    NUMBERS,
    TEXTS,
    AnyNumber,
    AnyText,
    Between,
    Condition,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ConditionColumns(NamedTuple):
    """The columns of conditions: texts, integers, and a time."""

    texts: Collection[str]
    numbers: Collection[str]
    time: str


MESSAGES: Final = ConditionColumns(
    TEXTS, [name for name in NUMBERS if name != "storeTimestamp"], "storeTimestamp"
)


def any_of(known: ConditionColumns, path: tuple[str, ...], values: list[Any]) -> Condition | None:
    """Return the condition that a column has one of some values; None if no condition expresses
    it.
    """
    column = _column(path)
    if column in known.texts:
        return AnyText(column, tuple(values)) if _all(values, str) else None
    if column == known.time and _all(values, datetime):
        times = [_microseconds(value) for value in values]
        if None in times:
            return None
        whole = [divmod(time, 1000) for time in times if time is not None]
        return AnyNumber(column, tuple(time for time, rest in whole if rest == 0))
    if column in known.numbers and _all(values, int):
        return AnyNumber(column, tuple(values))
    return None


def between(
    known: ConditionColumns,
    path: tuple[str, ...],
    low: Any = None,
    high: Any = None,
    *,
    is_open: bool = False,
) -> Condition | None:
    """Return the condition that a column is at least `low` or at most `high`; None if no condition
    expresses it.

    Args:
        is_open: the bound itself is excluded.
    """
    column = _column(path)
    value = high if low is None else low
    if column == known.time and type(value) is datetime:
        time = _microseconds(value)
        if time is None:
            return None
        # A time in milliseconds is above 1.5 if it is 2 or more, and below if it is 1 or less.
        number, rest = divmod(time, 1000)
        if low is not None:
            return Between(column, low=number + int(is_open or rest > 0))
        return Between(column, high=number - int(is_open and rest == 0))
    if column in known.numbers and type(value) is int:
        if low is not None:
            return Between(column, low=min(value + int(is_open), MOST))
        return Between(column, high=max(value - int(is_open), -MOST))
    return None


def _column(path: tuple[str, ...]) -> str:
    return path[0] if len(path) == 1 else ""


def _all(values: list[Any], kind: type) -> bool:
    return all(type(value) is kind for value in values)


def _microseconds(time: datetime) -> int | None:
    """Return a time in microseconds since 1970; None if Python has no such time in UTC."""
    try:
        aware = time if time.tzinfo is not None else time.astimezone(UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    except (OverflowError, ValueError, OSError):
        return None  # It is in the first or the last hours of all years.
