"""Queue offsets of inner batches: each message has one, however the batch is stored."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from mqlake.client.access import ClientAccess
from mqlake.client.consumer.broker_calls import Pulled, PullStatus
from mqlake.dispatch.adjacent import located
from mqlake.dispatch.arrow import to_arrow
from mqlake.errors import StoreError
from mqlake.formats import record
from mqlake.formats.inner_batch import FLAGS
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.properties import encode_properties
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.messages.body_compression import Codec, compress
from mqlake.query.live.losses import LiveLosses
from mqlake.query.live.pulls import Pulls
from mqlake.query.live.task import LiveTask, OffsetRange

QUEUE = MessageQueue("T", "broker-a", 0)
SIZE = 5


def batch(first: int, codec: Codec | None) -> bytes:
    body, bits = encode_batch((0, b"%d" % (first + n), b"") for n in range(SIZE)), 0
    if codec is not None:
        body, bits = compress(body, codec, 3)
    pairs = {"INNER_BASE": str(first), "INNER_NUM": str(SIZE)}
    return record.encode(
        topic="T",
        body=body,
        queue_offset=first,
        sys_flag=FLAGS | bits,
        properties=encode_properties(pairs),
    )


def plain(offset: int) -> bytes:
    return record.encode(topic="T", body=b"%d" % offset, queue_offset=offset)


class BrokerOfBatches:
    """Answers each pull with the records from the one that has the offset."""

    seconds = 1.0

    def __init__(self, records: dict[tuple[int, int], bytes]) -> None:
        self._records = records

    async def pull(self, queue: MessageQueue, offset: int, most: int, expression: str) -> Pulled:
        chosen = {span: data for span, data in self._records.items() if span[1] > offset}
        end = max(self._records)[1]
        return Pulled(PullStatus.FOUND, b"".join(chosen.values()), end, 0, end)

    async def mark(self, queue: MessageQueue, offset: int) -> None:
        return None


def read(
    records: dict[tuple[int, int], bytes], start: int, end: int, *, decompress: bool
) -> list[int]:
    """Return the queue offsets of what a task reads; a loss is an error."""
    task = LiveTask(
        name_servers="",
        access=ClientAccess(),
        ranges=(),
        expression="*",
        tags=None,
        keys=None,
        fail_on_data_loss=True,
        pull_size=32,
        retry_timeout=1,
        decompress=decompress,
    )
    brokers = cast("Any", BrokerOfBatches(records))
    pulls = Pulls(brokers, task, OffsetRange(QUEUE, start, end), LiveLosses(fail=True))

    async def main() -> list[int]:
        found: list[int] = []
        while (chunk := await pulls.chunk()) is not None:
            made = to_arrow(located(chunk.data, chunk.at), ["queueOffset"])
            found += made.column("queueOffset").to_pylist()
        return found

    return asyncio.run(main())


@pytest.mark.parametrize("codec", [None, "zlib", "lz4"])
@pytest.mark.parametrize(("start", "end"), [(0, 12), (2, 12), (3, 8), (6, 7)])
def test_no_message_of_a_batch_is_missing(codec: Codec | None, start: int, end: int) -> None:
    records = {(0, 5): batch(0, codec), (5, 6): plain(5), (6, 11): batch(6, codec)}
    records[11, 12] = plain(11)
    assert read(records, start, end, decompress=True) == list(range(start, end))
    whole = [first for first, _ in records if start <= first < end]
    assert read(records, start, end, decompress=False) == whole


@pytest.mark.parametrize("decompress", [True, False])
def test_a_missing_record_between_batches_is_a_loss(*, decompress: bool) -> None:
    records = {(0, 5): batch(0, "zlib"), (6, 11): batch(6, "zlib")}
    with pytest.raises(StoreError, match="1 message at offset 5: the broker does not return"):
        read(records, 1, 11, decompress=decompress)


@pytest.mark.parametrize("decompress", [True, False])
def test_bytes_after_a_batch_lose_one_message(*, decompress: bool) -> None:
    records = {(0, 5): batch(0, "zlib"), (5, 6): b"\0\0\1\0 no record"}
    with pytest.raises(StoreError, match="1 message at offset 5: the record is damaged"):
        read(records, 0, 6, decompress=decompress)
