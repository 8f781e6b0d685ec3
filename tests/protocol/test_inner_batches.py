"""Inner batches are taken apart up to a limit: a batch may compress to almost nothing."""

from __future__ import annotations

import pytest

from mqlake.arrow import record_run
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_run
from mqlake.dispatch.adjacent import QUEUE_OFFSET
from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.batch_consume_queue import MOST_MESSAGES
from mqlake.formats.inner_batch import FLAGS
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.protocol.messages.body_compression import compress
from mqlake.protocol.messages.inner_batches import messages_of, parts

EMPTY = encode_batch([(0, b"", b"")])


def batch(count: int, first: int = 0) -> bytes:
    body, bits = compress(EMPTY * count, "zlib", 9)
    return record.encode(topic="T", body=body, queue_offset=first, sys_flag=FLAGS | bits)


def test_the_messages_of_a_compressed_batch_are_plain_records() -> None:
    found = [record.decode(data) for data in messages_of(record.decode(batch(3, first=7)))]
    assert [(one.queue_offset, one.body) for one in found] == [(7, b""), (8, b""), (9, b"")]
    assert not any(one.sys_flag & (FLAGS | COMPRESSED) for one in found)


def test_a_batch_of_too_many_messages_is_none() -> None:
    assert len(list(parts(EMPTY * MOST_MESSAGES))) == MOST_MESSAGES
    with pytest.raises(FormatError, match="more than 32767 messages"):
        list(parts(EMPTY * (MOST_MESSAGES + 1)))
    with pytest.raises(FormatError, match="more than 32767 messages"):
        messages_of(record.decode(batch(MOST_MESSAGES + 1)))


def test_consumers_get_a_batch_of_too_many_messages_whole() -> None:
    (message,), end = decode_run(
        data := batch(MOST_MESSAGES + 1), "broker-a", ReceivedMessage, first=0
    )
    assert "more than 32767 messages" in (message.body_fault or "")
    assert end == len(data)


def test_consumers_take_very_many_messages_in_several_pulls() -> None:
    sizes = [20_000] * 3
    data = b"".join(batch(size, sum(sizes[:number])) for number, size in enumerate(sizes))
    found, end = decode_run(data, "broker-a", ReceivedMessage, first=0)
    assert [message.queue_offset for message in found] == list(range(40_000))
    rest, _ = decode_run(data[end:], "broker-a", ReceivedMessage, first=40_000)
    assert [message.queue_offset for message in rest] == list(range(40_000, 60_000))


def test_columns_of_very_many_messages_come_in_several_pulls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_run, "MOST_BYTES", 10_000)
    data = b"".join(batch(60, first) for first in range(0, 600, 60))
    taken, rows, end = record_run.find_messages(data)
    assert not record_run.is_whole(taken, rows, end)
    assert rows[QUEUE_OFFSET].tolist() == list(range(120))
