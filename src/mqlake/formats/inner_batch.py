"""Unpack inner batches: records that hold a batch of messages (docs/formats/message_batch.md).

Upstream: `MessageDecoder.decodeMessage`, `PullAPIWrapper.processPullResult`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.formats import record, sys_flag
from mqlake.formats.message_batch import decode_batch
from mqlake.formats.record import Record

FLAGS = sys_flag.INNER_BATCH | sys_flag.NEED_UNWRAP
"""Of the system flag: those of a record that consumers take apart."""


def is_wrapped(flags: int) -> bool:
    """Return whether the record with a system flag is to be taken apart."""
    return flags & FLAGS == FLAGS


def parts(body: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield flag, body and encoded properties of each message of a batch.

    The queue offset of each is one above that of the message before it; that of the first is the
    record's.

    Raises:
        FormatError: the body is no batch.
    """
    for part in decode_batch(body):
        yield (
            part.flag,
            body[part.body_at : part.body_at + part.body_length],
            body[part.properties_at : part.properties_at + part.properties_length],
        )


def unwrapped(wrapped: Record) -> list[bytes]:
    """Return the messages of a record as records of their own, at the same physical offset.

    Raises:
        FormatError: the body is no batch.
    """
    return [
        record.encode(
            topic=wrapped.topic,
            body=body,
            properties=properties,
            queue_id=wrapped.queue_id,
            queue_offset=wrapped.queue_offset + number,
            physical_offset=wrapped.physical_offset,
            flag=flag,
            sys_flag=wrapped.sys_flag & ~FLAGS,
            born_timestamp=wrapped.born_timestamp,
            born_host=wrapped.born_host,
            store_timestamp=wrapped.store_timestamp,
            store_host=wrapped.store_host,
            reconsume_times=wrapped.reconsume_times,
        )
        for number, (flag, body, properties) in enumerate(parts(wrapped.body))
    ]
