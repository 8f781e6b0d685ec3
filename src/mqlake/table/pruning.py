"""Find which part of the log can satisfy an Arrow expression that an engine pushes down.

Arrow does not show the parts of an expression. But it finds the partitions of a dataset for which
an expression can be true. So this module passes it artificial partitions: one for each topic, and
ranges of a number, which show the least and the greatest possible value.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from mqlake.query.reading.conditions import MOST, AnyText, Between, Condition, Interval, Selection
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.columns import COLUMNS

compute: Any = importlib.import_module("pyarrow.compute")  # Its functions are created at run time.
datasets: Any = importlib.import_module("pyarrow.dataset")
file_systems: Any = importlib.import_module("pyarrow.fs")

_PARTS = 64
_RANGES: dict[str, Interval] = {
    "queueId": (0, (1 << 31) - 1),
    "queueOffset": (0, MOST),
    "physicalOffset": (0, MOST),
    "storeTimestamp": (0, 253_402_127_999_999_000),
}
"""The numeric columns that are searched, with bounds; times are in microseconds.

A result that equals a bound does not limit the values: those beyond it are possible.
"""


def columns_in(expression: Any) -> frozenset[str]:
    """Return the columns that a `pyarrow.compute.Expression` reads."""
    whole = arrow_schema(COLUMNS).empty_table()
    return frozenset(name for name in COLUMNS if not _works(whole.drop_columns(name), expression))


def boolean(expression: Any) -> Any:
    """Return an expression as a filter: one that is always null is true for no row."""
    empty = arrow_schema(COLUMNS).empty_table()
    try:
        found = datasets.dataset(empty).to_table({"value": expression})
    except pa.ArrowException:
        return expression  # The scan says what is wrong with it.
    return expression.cast(pa.bool_()) if pa.types.is_null(found.schema.types[0]) else expression


def _works(table: Any, expression: Any) -> bool:
    try:
        datasets.dataset(table).to_table({"value": expression})
    except pa.ArrowInvalid:
        return False
    return True


def pushed(expression: Any, columns: frozenset[str], topics: Iterable[str]) -> Selection:
    """Return conditions that rows must satisfy if an expression is true for them.

    Args:
        columns: the columns that the expression reads.
        topics: all topics that the store may have.
    """
    found: list[Condition] = []
    if "topic" in columns:
        listed = sorted(topics)
        parts = [compute.field("topic") == topic for topic in listed]
        alive = _possible(expression, parts)
        if len(alive) < len(listed):
            found.append(AnyText("topic", tuple(listed[number] for number in alive)))
    ranges = (_between(expression, column) for column in _RANGES if column in columns)
    return (*found, *(one for one in ranges if one is not None))


def _between(expression: Any, column: str) -> Condition | None:
    least, most = _RANGES[column]
    low, high = _hull(expression, column, least, most)
    if column == "storeTimestamp":
        low, high = -(-low // 1000), high // 1000
        least, most = least // 1000, most // 1000
    if (low, high) == (least, most):
        return None
    return Between(column, -MOST if low == least else low, MOST if high == most else high)


def _hull(expression: Any, column: str, low: int, high: int) -> Interval:
    """Return the smallest range with all possible values; an empty one if no value is possible."""
    first = _edge(expression, column, (low, high), 0)
    if first is None:
        return low, low - 1
    last = _edge(expression, column, (first, high), -1)
    return first, high if last is None else last


def _edge(expression: Any, column: str, within: Interval, side: int) -> int | None:
    """Return a bound of the possible values: no lesser (`side` 0) or greater (-1) one is possible.

    None if no value is possible. Arrow may find out only for a part of a range that no value in it
    is possible: then the bound is less narrow.
    """
    if _possible(expression, [_is_in(column, (within[side], within[side]))]):
        return within[side]
    is_whole = True
    while within[0] < within[1]:
        step = -(-(within[1] - within[0] + 1) // _PARTS)
        starts = range(within[0], within[1] + 1, step)
        ranges = [(start, min(start + step - 1, within[1])) for start in starts]
        alive = _possible(expression, [_is_in(column, one) for one in ranges])
        if not alive:
            # Values may be possible in the other ranges, which were left out before.
            return None if is_whole else within[side]
        within, is_whole = ranges[alive[side]], False
    return within[side]


def _is_in(column: str, values: Interval) -> Any:
    field, kind = compute.field(column), arrow_schema([column]).field(0).type
    return (field >= pa.scalar(values[0], kind)) & (field <= pa.scalar(values[1], kind))


def _possible(expression: Any, parts: Sequence[Any]) -> list[int]:
    """Return the numbers of the partitions in which an expression can be true, ascending."""
    form, nowhere = datasets.ParquetFileFormat(), file_systems.LocalFileSystem()
    fragments = [
        form.make_fragment(str(number), nowhere, partition_expression=part)
        for number, part in enumerate(parts)
    ]
    whole = datasets.FileSystemDataset(fragments, arrow_schema(COLUMNS), form, nowhere)
    try:
        return sorted(int(fragment.path) for fragment in whole.get_fragments(filter=expression))
    except pa.ArrowInvalid:
        # Arrow cannot compare a large integer with a floating-point number: nothing is excluded.
        return list(range(len(parts)))
