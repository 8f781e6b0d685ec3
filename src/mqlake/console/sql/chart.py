"""Choose a chart for the result of a query."""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeGuard

from mqlake.console.sql.statement import SqlResult

_TIMES = ("TIMESTAMP", "DATE")
_MOST_SERIES = 5


def chart_of(result: SqlResult) -> dict[str, Any] | None:
    """Return a line chart of a result, as the script of the pages draws it.

    The first column, a time or a number, is horizontal. All other numbers are lines. None if the
    result is something else.
    """
    if len(result.rows) < 2 or len(result.columns) < 2:
        return None
    is_time = result.types[0].startswith(_TIMES)
    found = [_seconds(row[0]) if is_time else row[0] for row in result.rows]
    places = [place for place in found if _is_number(place)]
    if len(places) < len(found):
        return None
    lines = [
        number
        for number in range(1, len(result.columns))
        if all(row[number] is None or _is_number(row[number]) for row in result.rows)
    ][:_MOST_SERIES]
    if not lines:
        return None
    order = sorted(range(len(places)), key=places.__getitem__)
    return {
        "time": is_time,
        "series": [{"label": result.columns[number]} for number in lines],
        "values": [
            [places[at] for at in order],
            *([result.rows[at][number] for at in order] for number in lines),
        ],
    }


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _seconds(value: object) -> float | None:
    try:
        found = dt.datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp()
