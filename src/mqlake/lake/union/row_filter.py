"""Decide which rows of a table's files a query selects (for records: `query.store.row_filter`)."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as datasets

from mqlake.query.reading.conditions import (
    MOST,
    AnyNumber,
    AnyText,
    Between,
    HasKey,
    InQueues,
    Selection,
    TopicMatches,
)
from mqlake.query.store.row_filter import string_array

compute: Any = importlib.import_module("pyarrow.compute")  # Its functions are created at run time.

Mask = npt.NDArray[np.bool_]

TIME = pa.timestamp("us", "UTC")

# Milliseconds of the years 1 to 9999: no message was stored before or after.
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000, 253_402_300_799_999

_PREPARED = 4
"""The bit of `sysFlag` of PREPARED and ROLLBACK records, which are in no queue."""


def as_time(milliseconds: int) -> Any:
    """Return a time as an Arrow scalar; times out of range become the first or last one."""
    clamped = min(max(milliseconds, _FIRST_TIME), _LAST_TIME)
    return pa.scalar(clamped * 1000, TIME)


def columns_of(selection: Selection) -> set[str]:
    """Return the columns that decide whether a row is selected."""
    found: set[str] = set()
    for one in selection:
        match one:
            case Between() | AnyNumber() | AnyText():
                found.add(one.column)
            case TopicMatches():
                found.add("topic")
            case HasKey():
                found |= {"keys", "uniqKey"}
            case InQueues():
                found |= {"topic", "queueId", "queueOffset", "sysFlag"}
    return found


def expression(selection: Selection) -> Any:
    """Return a `pyarrow.compute.Expression` that can skip row groups, or None."""
    found = [part for one in selection if (part := _part(one)) is not None]
    whole = None
    for part in found:
        whole = part if whole is None else whole & part
    return whole


def _part(one: Any) -> Any:
    match one:
        case Between():
            field, value = datasets.field(one.column), _value_of(one.column)
            return (field >= value(one.low)) & (field <= value(one.high))
        case AnyNumber():
            values = [_value_of(one.column)(number) for number in one.values if abs(number) <= MOST]
            whole = pa.scalar(False)
            found = [datasets.field(one.column) == value for value in values]
            return _any(found) if found else datasets.scalar(whole)
        case AnyText():
            return datasets.field(one.column).isin(string_array(one.values))
        case _:
            return None


def _any(parts: list[Any]) -> Any:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole | part
    return whole


def _value_of(column: str) -> Any:
    return as_time if column == "storeTimestamp" else lambda number: pa.scalar(number, pa.int64())


class LakeRowFilter:
    """A filter over batches of rows: the conditions of a selection that `expression` lacks."""

    def __init__(self, selection: Selection) -> None:
        self._conditions = [
            one for one in selection if isinstance(one, TopicMatches | HasKey | InQueues)
        ]

    def choose(self, batch: Any) -> Any:
        """Return the selected rows of a `pyarrow.RecordBatch`."""
        for one in self._conditions:
            match one:
                case TopicMatches():
                    mask = _topic_mask(one, batch.column("topic"))
                case HasKey():
                    mask = _key_mask(one, batch)
                case InQueues():
                    mask = _queue_mask(one, batch)
            if not mask.all():
                batch = batch.filter(pa.array(mask))
        return batch


def _topic_mask(one: TopicMatches, topics: Any) -> Mask:
    codes, names = _codes(topics)
    return np.array([one.holds(name) for name in names] + [False])[codes]


def _codes(texts: Any) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return a number for each text, and the texts by number; null has the number -1."""
    encoded = texts.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()


def _key_mask(one: HasKey, batch: Any) -> Mask:
    values = string_array(one.keys)
    keys = batch.column("keys")
    hits = compute.is_in(compute.list_flatten(keys), value_set=values)
    rows = compute.filter(compute.list_parent_indices(keys), hits).to_numpy(zero_copy_only=False)
    mask = compute.is_in(batch.column("uniqKey"), value_set=values)
    found = mask.to_numpy(zero_copy_only=False).astype(np.bool_)
    found[rows] = True
    return found


def _queue_mask(one: InQueues, batch: Any) -> Mask:
    codes, names = _codes(batch.column("topic"))
    queue_ids, offsets, flags = (
        compute.fill_null(batch.column(name), 0).to_numpy(zero_copy_only=False)
        for name in ("queueId", "queueOffset", "sysFlag")
    )
    pairs, of_row = np.unique(np.stack([codes, queue_ids]), axis=1, return_inverse=True)
    default = (0, MOST) if one.others else (0, 0)
    ranges = np.array(
        [
            one.ranges.get((names[code], queue_id), default) if code >= 0 else (0, 0)
            for code, queue_id in pairs.T.tolist()
        ],
        np.int64,
    ).reshape(-1, 2)[of_row.reshape(-1)]
    is_queued = flags & _PREPARED == 0
    return is_queued & (offsets >= ranges[:, 0]) & (offsets < ranges[:, 1])
