"""Encode rows as drafts of records (`mqlake.dispatch.drafts`), a column at a time."""

# pyright: basic, reportAttributeAccessIssue=false
# pyarrow has no types, and creates its functions when it is imported.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mqlake.dispatch.drafts import DRAFT, Drafts, Routes
from mqlake.dispatch.writing.encode import QueueRoute, make_routes
from mqlake.errors import FormatError
from mqlake.formats import sys_flag
from mqlake.formats.properties import MAX_LENGTH
from mqlake.spark.sink.columns import take
from mqlake.spark.sink.options import WriteOptions
from mqlake.spark.sink.property_texts import property_texts
from mqlake.storage.clock import SystemClock
from mqlake.store.append.checks import AppendChecks, Refusal
from mqlake.store.append.message import Message
from mqlake.store.delivery.schedule import Schedule
from mqlake.store.live_settings import current

_LEAD = 16  # Kernels load whole words.
_NUMBERS = {
    "flag": "flag",
    "sysFlag": "sys_flag",
    "reconsumeTimes": "reconsume_times",
    "preparedTransactionOffset": "prepared_transaction_offset",
}
_QUEUE_ID_BITS = 32


class Laid(NamedTuple):
    """Encoded rows; `queues` has topic and queue id of each route."""

    drafts: Drafts
    routes: Routes
    queues: list[tuple[str, int]]


class BatchEncoder:
    """Creates the drafts of batches of one task, one batch after another.

    Args:
        largest_record: the maximum size of a record, in bytes.
        first: the queue id with which rows without a queue id begin; they are distributed in turn.
    """

    def __init__(self, options: WriteOptions, largest_record: int, first: int) -> None:
        self._options, self._turn = options, first
        settings = current(options.settings)
        self._schedule = Schedule(settings)
        self._checks = AppendChecks(settings, largest_record)

    def lay_out(self, batch: Any) -> Laid:
        """Return the rows of a `pyarrow.RecordBatch` as drafts.

        Raises:
            FormatError: a row cannot be stored.
        """
        count = len(batch)
        columns = take(batch)
        body = self._body(columns["body"])
        topics, queue_ids = self._topics(columns, count), self._queue_ids(columns, count)
        texts, delayed = property_texts(columns, count)
        if delayed.any():
            topics, queue_ids, texts = self._delay(columns, topics, queue_ids, texts, delayed)
        self._check_length(texts)
        rows = np.zeros(count, DRAFT)
        source = _place(rows, "body", body)
        drafts = Drafts(source, _place(rows, "properties", texts), rows)
        for column, field in _NUMBERS.items():
            if column in columns:
                rows[field] = _numbers(columns[column], 0)
        if (rows["sys_flag"] & sys_flag.INNER_BATCH).any():
            raise FormatError("sysFlag: inner batches cannot be written")
        now = SystemClock().milliseconds()
        born = columns.get("bornTimestamp")
        rows["born_timestamp"] = now if born is None else _numbers(born, now)
        rows["regular"] = 1
        queues = _number_queues(rows, topics, queue_ids)
        hosts = self._number_hosts(rows, columns.get("bornHost"))
        routes = make_routes(
            [self._route(*queue) for queue in queues], [*hosts, self._checks.store_host]
        )
        return Laid(drafts, routes, queues)

    def _check_length(self, texts: Any) -> None:
        longest = (pc.max(pc.binary_length(texts)).as_py() or 0) + self._checks.crc_size
        if longest > MAX_LENGTH:
            raise FormatError(
                f"the properties of a row have {longest} bytes; the maximum is {MAX_LENGTH}"
            )

    def _body(self, body: Any) -> Any:
        if body.null_count:
            raise FormatError("a row has no body: it is null")
        longest = pc.max(pc.binary_length(body)).as_py() or 0
        if longest > self._checks.longest_body:
            raise FormatError(
                f"a body has {longest} bytes; the maximum (maxMessageSize) is "
                f"{self._checks.longest_body}"
            )
        return body

    def _topics(self, columns: dict[str, Any], count: int) -> Any:
        if self._options.topic is not None:
            return pa.repeat(pa.scalar(self._options.topic, pa.string()), count)
        topics = columns.get("topic")
        if topics is None or topics.null_count:
            raise FormatError("a row has no topic: it is null")
        return topics

    def _queue_ids(self, columns: dict[str, Any], count: int) -> Any:
        turns = (self._turn + np.arange(count)) % self._options.queues
        self._turn = (self._turn + count) % self._options.queues
        if "queueId" not in columns:
            return turns
        given = columns["queueId"]
        ids = np.where(given.is_null().to_numpy(zero_copy_only=False), turns, _numbers(given, 0))
        if ids.min(initial=0) < 0:
            raise FormatError(f"queueId: {ids.min()} is not a queue id")
        return ids

    def _delay(self, columns: dict[str, Any], topics: Any, ids: Any, texts: Any, which: Any):
        """Set aside the rows that ask for a delay, as brokers do; few rows do."""
        names, packed, ids = topics.to_pylist(), texts.to_pylist(), ids.copy()
        flags = _numbers(columns["sysFlag"], 0) if "sysFlag" in columns else None
        for row in np.flatnonzero(which).tolist():
            flag = 0 if flags is None else int(flags[row])
            message = self._put_aside(
                Message(
                    names[row],
                    b"",
                    queue_id=int(ids[row]),
                    sys_flag=flag,
                    encoded_properties=packed[row],
                )
            )
            names[row], ids[row] = message.topic, message.queue_id
            packed[row] = message.encoded_properties
        return pa.array(names, pa.string()), ids, pa.array(packed, pa.binary())

    def _put_aside(self, message: Message) -> Message:
        try:
            return self._schedule.apply(message)
        except Refusal as refusal:
            raise FormatError(f"properties: {refusal}") from None

    def _number_hosts(self, rows: Any, hosts: Any) -> list[bytes]:
        if hosts is None:
            return [self._sender("")]
        found = pc.fill_null(hosts, "").dictionary_encode()
        rows["host"] = found.indices.to_numpy()
        return [self._sender(text) for text in found.dictionary.to_pylist()]

    def _sender(self, text: str) -> bytes:
        try:
            return self._checks.sender(text).host
        except Refusal as refusal:
            raise FormatError(f"bornHost: {refusal}") from None

    def _route(self, topic: str, _: int) -> QueueRoute:
        try:
            part = self._checks.topic(topic)
        except Refusal as refusal:
            raise FormatError(str(refusal)) from None
        return QueueRoute(0, part.magic, part.data)


def _number_queues(rows: Any, topics: Any, queue_ids: Any) -> list[tuple[str, int]]:
    names = topics.dictionary_encode()
    both = names.indices.to_numpy().astype(np.int64) << _QUEUE_ID_BITS | queue_ids
    found, rows["queue"] = np.unique(both, return_inverse=True)
    rows["queue_id"] = queue_ids
    topic_of = names.dictionary.to_pylist()
    mask = (1 << _QUEUE_ID_BITS) - 1
    return [(topic_of[one >> _QUEUE_ID_BITS], one & mask) for one in found.tolist()]


def _numbers(values: Any, default: int) -> Any:
    return pc.fill_null(values, default).to_numpy(zero_copy_only=False)


def _place(rows: Any, name: str, values: Any) -> Any:
    """Add the positions of an array's bytes to the returned copy, which has a margin before it."""
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(_LEAD + last - first, np.uint8)
    if last > first:
        data[_LEAD:] = np.frombuffer(values.buffers()[2], np.uint8)[first:last]
    rows[f"{name}_at"] = offsets[:-1].astype(np.int64) - first + _LEAD
    rows[f"{name}_length"] = np.diff(offsets)
    return data
