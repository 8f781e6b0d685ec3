"""Decide which records of a batch a query selects.

Texts are compared as in the columns, so that a filter chooses what Spark would choose. Numbers come
first: texts are created only for the remaining records.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.queue_table import QueueTable
from mqlake.dispatch.scan import Want
from mqlake.formats import java_string
from mqlake.formats.record import Fault
from mqlake.jobs.bodies.inner_batches import columns_of
from mqlake.query.reading.conditions import (
    MOST,
    AnyNumber,
    AnyText,
    Between,
    HasKey,
    InQueues,
    Living,
    Selection,
    TopicMatches,
    TopicShare,
)

compute: Any = importlib.import_module("pyarrow.compute")  # Its functions are created at run time.

Mask = npt.NDArray[np.bool_]

_FIELDS = {
    "queueId": "queue_id",
    "queueOffset": "queue_offset",
    "physicalOffset": "physical_offset",
    "storeTimestamp": "store_timestamp",
}


class RowFilter:
    """A filter over the batches of scans."""

    def __init__(self, selection: Selection) -> None:
        self._by_number = [one for one in selection if isinstance(one, Between | AnyNumber)]
        self._by_queue = [one for one in selection if isinstance(one, InQueues)]
        self._by_topic = [
            one
            for one in selection
            if isinstance(one, TopicMatches | TopicShare)
            or (isinstance(one, AnyText) and one.column == "topic")
        ]
        self._by_text = [
            one
            for one in selection
            if isinstance(one, AnyText | HasKey) and one not in self._by_topic
        ]
        self._living = next((one for one in selection if isinstance(one, Living)), None)
        self.dead = 0
        """The messages of deleted topics that were left out."""
        self._table: QueueTable | None = None
        self._of_table: Mask = np.zeros(0, np.bool_)

    @property
    def want(self) -> Want:
        """The least that a scan must fill: to number the queues takes time."""
        is_by_name = self._by_queue or self._by_topic or self._living
        return Want.EXPORT if is_by_name else Want.LOCATE

    def choose(self, batch: Batch) -> Batch:
        """Return the batch with the good records that are selected."""
        batch = _keep(batch, batch.records["fault"] == Fault.GOOD)
        for one in self._by_number:
            batch = _keep(batch, _number_mask(one, batch))
        for one in self._by_queue:
            batch = _keep(batch, _queue_mask(one, batch))
        if self._by_topic:
            batch = _keep(batch, self._topic_mask(batch))
        for one in self._by_text:
            batch = _keep(batch, _text_mask(one, batch))
        if self._living is not None:
            living = _keep(batch, _living_mask(self._living, batch))
            self.dead += len(batch.records) - len(living.records)
            batch = living
        return batch

    def _topic_mask(self, batch: Batch) -> Mask:
        """Decide which topics are selected: once for each queue, and once for each record in no
        queue.
        """
        queues = batch.records["queue"]
        wanted = self._wanted_queues(batch.table)
        mask = np.zeros(len(queues), np.bool_)
        queued = queues >= 0
        mask[queued] = wanted[queues[queued]]
        for row in np.flatnonzero(~queued).tolist():
            mask[row] = self._wants(_topic(batch, row))
        return mask

    def _wanted_queues(self, table: QueueTable) -> Mask:
        """Return for each queue of a scan whether its topic is selected.

        Scans of many topics have many queues: each is looked at once, not for each batch.
        """
        if table is not self._table:
            self._table, self._of_table = table, np.zeros(0, np.bool_)
        numbers = range(len(self._of_table), len(table))
        if numbers:
            new = np.array([self._wants(table[number][0]) for number in numbers], np.bool_)
            self._of_table = np.concatenate((self._of_table, new))
        return self._of_table

    def _wants(self, topic: bytes) -> bool:
        text = java_string.decode(topic)
        return all(
            text in one.values if isinstance(one, AnyText) else one.holds(text)
            for one in self._by_topic
        )


def _keep(batch: Batch, mask: Mask) -> Batch:
    return batch if mask.all() else batch._replace(records=batch.records[mask])


def _number_mask(one: Between | AnyNumber, batch: Batch) -> Mask:
    values = batch.records[_FIELDS[one.column]]
    if isinstance(one, AnyNumber):
        return np.isin(values, np.array([v for v in one.values if abs(v) <= MOST], np.int64))
    return (values >= one.low) & (values <= one.high)


def _queue_mask(one: InQueues, batch: Batch) -> Mask:
    default = (0, MOST) if one.others else (0, 0)
    ranges = np.array(
        [
            one.ranges.get((java_string.decode(topic), queue_id), default)
            for topic, queue_id in batch.table
        ]
        + [(0, 0)],  # queue -1: none
        np.int64,
    )
    of_row = ranges[batch.records["queue"]]
    offsets = batch.records["queue_offset"]
    return (offsets >= of_row[:, 0]) & (offsets < of_row[:, 1])


def _living_mask(one: Living, batch: Batch) -> Mask:
    offsets = batch.records["physical_offset"]
    if not len(offsets) or offsets[0] >= one.end:
        return np.ones(len(offsets), np.bool_)
    befores = np.array(
        [one.before(java_string.decode(topic)) for topic, _ in batch.table] + [0], np.int64
    )
    of_row = befores[batch.records["queue"]]
    for row in np.flatnonzero(batch.records["queue"] < 0).tolist():
        of_row[row] = one.before(java_string.decode(_topic(batch, row)))
    return offsets >= of_row


def _topic(batch: Batch, row: int) -> bytes:
    record = batch.records[row]
    at = int(record["topic_at"])
    return batch.buffer[at : at + int(record["topic_length"])].tobytes()


def _text_mask(one: AnyText | HasKey, batch: Batch) -> Mask:
    if isinstance(one, AnyText):
        return _is_any(columns_of(batch, [one.column]).column(0), one.values)
    columns = columns_of(batch, ["uniqKey", "keys"])
    keys = columns.column(1)
    hits = np.concatenate(([0], np.cumsum(_is_any(keys.values, one.keys))))
    starts = np.frombuffer(keys.buffers()[1], np.int32)[: len(keys) + 1]
    return _is_any(columns.column(0), one.keys) | (hits[starts[1:]] > hits[starts[:-1]])


def _is_any(array: Any, values: tuple[str, ...]) -> Mask:
    found = compute.is_in(array, value_set=string_array(values)).cast(pa.uint8())
    return np.frombuffer(found.buffers()[1], np.uint8)[: len(array)].astype(np.bool_)


def string_array(values: Sequence[str]) -> Any:
    """Return a string array. `pa.array` would import pandas, which takes a second."""
    data = [value.encode("utf-8", "replace") for value in values]
    ends = np.cumsum([0, *map(len, data)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(ends), pa.py_buffer(b"".join(data)))
