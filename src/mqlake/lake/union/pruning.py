"""Leave out files of a table that cannot have a selected row.

Files are rows of a `pyarrow.Table` with the columns `topic` and `day`, if these are partitions, and
`least.NAME` and `most.NAME` for columns whose bounds are known. An unknown value (null) may be
anything.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import importlib
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from mqlake.lake.union.row_filter import as_time
from mqlake.query.reading.conditions import (
    NUMBERS,
    AnyText,
    Selection,
    interval,
    wants_topic,
)
from mqlake.query.store.row_filter import string_array

compute: Any = importlib.import_module("pyarrow.compute")  # Its functions are created at run time.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def wanted_files(files: Any, selection: Selection) -> Any:
    """Return the files that may have rows of a selection."""
    files = _by_topic(files, selection)
    for name in NUMBERS:
        low, high = interval(selection, name)
        if name == "storeTimestamp":
            files = _within(files, "day", "day", _day(low), _day(high))
            low, high = as_time(low), as_time(high)
        files = _within(files, f"most.{name}", f"least.{name}", low, high)
    for one in selection:
        if isinstance(one, AnyText):
            files = _by_text(files, one)
    return files


def _by_topic(files: Any, selection: Selection) -> Any:
    if "topic" not in files.column_names:
        return files
    topics = compute.unique(files.column("topic")).to_pylist()
    wanted = [topic for topic in topics if topic and wants_topic(selection, topic)]
    if len(wanted) == len(topics):
        return files
    return files.filter(compute.is_in(files.column("topic"), value_set=string_array(wanted)))


def _within(files: Any, most: str, least: str, low: Any, high: Any) -> Any:
    """Keep files whose largest value is not below `low` and whose least is not above `high`."""
    names = files.column_names
    if most not in names or least not in names:
        return files
    above = compute.greater_equal(files.column(most), low)
    below = compute.less_equal(files.column(least), high)
    both = compute.and_kleene(above, below)
    return files.filter(compute.fill_null(both, True))


def _by_text(files: Any, one: AnyText) -> Any:
    least, most = f"least.{one.column}", f"most.{one.column}"
    if least not in files.column_names or most not in files.column_names:
        return files
    keep: Any = pa.chunked_array([pa.repeat(pa.scalar(False), files.num_rows)])
    for value in one.values:
        above = compute.greater_equal(files.column(most), value)
        below = compute.less_equal(files.column(least), value)
        keep = compute.or_kleene(keep, compute.and_kleene(above, below))
    return files.filter(compute.fill_null(keep, True))


def _day(milliseconds: int) -> date:
    """Return the UTC day of a time; times out of range become the first or last day."""
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).date()
    except OverflowError:
        return date.min if milliseconds < 0 else date.max
