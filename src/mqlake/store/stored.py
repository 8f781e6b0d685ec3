"""Stored records, and the messages that are made from them to be put again."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.batch_consume_queue import MOST_MESSAGES
from mqlake.formats.inner_batch import FLAGS, is_wrapped, parts
from mqlake.formats.properties import UNIQ_KEY, decode_properties
from mqlake.formats.record import Record
from mqlake.store.append.message import Message

_MOST_RETURNS = (1 << 31) - 1


class Stored(NamedTuple):
    """A record, and its encoded properties."""

    record: Record
    properties: bytes


def read_stored(data: bytes | memoryview) -> Stored | None:
    """Return the record in some bytes, or None if it is not valid."""
    try:
        found = record.decode(data)
    except FormatError:
        return None
    _, layout = record.check(data, 0, len(data), crc=False)
    if layout is None:
        return None
    start = layout.properties_at
    return Stored(found, bytes(data[start : start + layout.properties_length]))


def inner_message(stored: Stored, unique_key: str | None) -> Stored | None:
    """Return the message of an inner batch with a unique key, or None if it has no such message.

    A record that is not an inner batch is returned as it is.
    """
    record = stored.record
    if not is_wrapped(record.sys_flag):
        return stored
    try:
        found_parts = islice(parts(record.body), MOST_MESSAGES)
        for number, (flag, body, encoded) in enumerate(found_parts):
            pairs = decode_properties(encoded)
            if unique_key and pairs.get(UNIQ_KEY) == unique_key:
                found = msgspec.structs.replace(
                    record,
                    queue_offset=record.queue_offset + number,
                    flag=flag,
                    sys_flag=record.sys_flag & ~FLAGS,
                    properties=pairs,
                    body=body,
                )
                return Stored(found, encoded)
    except FormatError:
        pass
    return None


def message_of(
    found: Record, topic: str, queue_id: int, properties: bytes, sys_flag: int
) -> Message:
    """Return a message with the body, the flag and the origin of a record."""
    return Message(
        topic=topic,
        body=found.body,
        queue_id=queue_id,
        flag=found.flag,
        sys_flag=sys_flag,
        born_timestamp=found.born_timestamp,
        born_host=found.born_host,
        reconsume_times=found.reconsume_times,
        encoded_properties=properties,
    )


def returned_once_more(found: Record) -> int:
    """Return the new number of redeliveries if a message is redelivered now."""
    return min(found.reconsume_times + 1, _MOST_RETURNS)
