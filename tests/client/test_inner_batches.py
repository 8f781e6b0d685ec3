"""Consumers take inner batches apart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from mqlake.arrow import SETTINGS as ARROW_SETTINGS
from mqlake.arrow import ArrowConsumer
from mqlake.arrow.record_run import read_run
from mqlake.client import Consumer, ConsumerSettings, MessageQueue, PullConsumer
from mqlake.client.consumer.broker_calls import BrokerCalls, Pulled
from mqlake.client.consumer.subscriptions import ALL, SelectedTopic
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_run
from mqlake.errors import FormatError
from mqlake.formats import inner_batch, record
from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.admin import CreateTopicHeader
from mqlake.protocol.headers.pull import PullHeader
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.protocol.namespace import Namespace
from mqlake.remoting.client import RemotingClient
from mqlake.testing import RunningBroker, broker
from tests.client.servers import wait_for_dispatch

PATIENCE = 200
FIRST = ConsumerSettings(consume_from="first", handling_timeout=PATIENCE)
COUNT, SIZE = 12, 7


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


def body(first: int, size: int = SIZE) -> bytes:
    return encode_batch(
        (number, b"%d" % number, f"UNIQ_KEY\x01KEY{number}\x02TAGS\x01t{number % 2}\x02".encode())
        for number in range(first, first + size)
    )


async def send(running: RunningBroker, topic: str) -> None:
    """Send batches of one queue, numbered on, and a single message behind each second one."""
    client = RemotingClient(connect_timeout=PATIENCE)
    made = CreateTopicHeader(
        topic=topic,
        read_queue_nums=1,
        write_queue_nums=1,
        perm=6,
        topic_filter_type="SINGLE_TAG",
        attributes="+queue.type=BatchCQ",
    )

    async def ask(code: RequestCode, header: object, data: bytes = b"") -> None:
        command = request(code, header, data)  # pyright: ignore[reportArgumentType]
        answer = await client.request(running.address, command, PATIENCE)
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    await ask(RequestCode.UPDATE_AND_CREATE_TOPIC, made)
    for number in range(COUNT):
        header = SendMessageHeaderV2(
            producer_group="producers",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=1,
            queue_id=0,
            sys_flag=0,
            born_timestamp=1,
            flag=0,
            batch=True,
            properties="UNIQ_KEY\x01WHOLE\x02",
        )
        await ask(RequestCode.SEND_BATCH_MESSAGE, header, body(number * SIZE))
    await client.close()
    await wait_for_dispatch(running.address, topic, {0: COUNT * SIZE})


def test_a_group_receives_each_message_of_an_inner_batch_once(running: RunningBroker) -> None:
    async def collect(count: int) -> list[tuple[int, bytes, int, str | None]]:
        found: list[tuple[int, bytes, int, str | None]] = []
        async with Consumer(running.name_server, "each", "Each", settings=FIRST) as consumer:
            async with asyncio.timeout(PATIENCE):
                async for message in consumer:
                    assert await message.ack()
                    found.append(
                        (message.queue_offset, message.body, message.flag, message.unique_key)
                    )
                    if len(found) == count:
                        break
        return found

    async def main() -> None:
        await send(running, "Each")
        # The group stops, and goes on, within a batch.
        found = await collect(10) + await collect(COUNT * SIZE - 10)
        assert found == [
            (number, b"%d" % number, number, f"KEY{number}") for number in range(COUNT * SIZE)
        ]

    asyncio.run(main())


@pytest.mark.parametrize("start", [0, 4, SIZE, COUNT * SIZE - 1])
def test_a_reader_begins_at_the_message_that_it_seeks(running: RunningBroker, start: int) -> None:
    async def main() -> None:
        topic = f"Sought{start}"
        await send(running, topic)
        async with PullConsumer(running.name_server, "seeking") as reader:
            (queue,) = await reader.queues_of(topic)
            reader.assign([queue])
            await reader.seek(queue, start)
            found: list[bytes] = []
            async with asyncio.timeout(PATIENCE):
                while len(found) < COUNT * SIZE - start:
                    found += [message.body for message in await reader.poll(1.0)]
        assert found == [b"%d" % number for number in range(start, COUNT * SIZE)]

    asyncio.run(main())


def test_columns_have_a_row_for_each_message(running: RunningBroker) -> None:
    async def main() -> None:
        await send(running, "Rows")
        settings = msgspec.structs.replace(ARROW_SETTINGS, consume_from="first")
        rows: list[tuple[int, bytes, str]] = []
        async with ArrowConsumer(running.name_server, "rows", "Rows", settings=settings) as group:
            async with asyncio.timeout(PATIENCE):
                async for batch in group.arrow_batches():
                    assert await batch.ack()
                    columns = batch.records.select(["queueOffset", "body", "tags"]).to_pydict()
                    rows += zip(*columns.values(), strict=True)
                    if len(rows) >= COUNT * SIZE:
                        break
        assert sorted(rows) == [
            (number, b"%d" % number, f"t{number % 2}") for number in range(COUNT * SIZE)
        ]

    asyncio.run(main())


def test_a_batch_that_cannot_be_taken_apart_is_handed_over_with_the_reason() -> None:
    data = record.encode(topic="T", body=b"no batch", sys_flag=inner_batch.FLAGS, queue_offset=9)
    (message,), end = decode_run(data, "broker-a", ReceivedMessage, 9)
    assert (message.body, end) == (b"no batch", len(data))
    assert "cannot be split" in (message.body_fault or "")
    assert message.queue == MessageQueue("T", "broker-a", 0)


BEFORE = record.encode(topic="T", body=body(0), sys_flag=inner_batch.FLAGS, queue_offset=0)
NO_RECORD = b"????" * 40


def test_bytes_that_are_no_record_after_an_earlier_batch_are_an_error() -> None:
    data, queue = BEFORE + NO_RECORD, MessageQueue("T", "broker-a", 0)
    messages, end = decode_run(data, "broker-a", ReceivedMessage, SIZE - 1)
    assert ([message.body for message in messages], end) == ([b"6"], len(BEFORE))
    with pytest.raises(FormatError, match=f"byte {len(BEFORE)}: no record starts here"):
        decode_run(data, "broker-a", ReceivedMessage, SIZE)

    wanted = SelectedTopic("T", ALL, 0)
    run, last = read_run(data, queue, wanted, SIZE - 1, Namespace(""))
    assert run is not None
    assert (run.message_count(), last) == (1, SIZE - 1)
    with pytest.raises(FormatError, match=f"queue offset {SIZE}: no record starts here"):
        read_run(data, queue, wanted, SIZE, Namespace(""))


def test_a_reader_continues_after_an_answer_without_any_requested_record(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pull, spoiled = BrokerCalls.pull, list[int]()

    async def spoil(calls: BrokerCalls, queue: MessageQueue, header: PullHeader) -> Pulled:
        found = await pull(calls, queue, header)
        if spoiled or not found.data:
            return found
        spoiled.append(header.queue_offset)
        return found._replace(data=BEFORE + NO_RECORD)

    monkeypatch.setattr(BrokerCalls, "pull", spoil)

    async def main() -> None:
        await send(running, "Spoiled")
        async with PullConsumer(running.name_server, "spoiled") as reader:
            (queue,) = await reader.queues_of("Spoiled")
            reader.assign([queue])
            await reader.seek(queue, SIZE)
            async with asyncio.timeout(PATIENCE):
                while not (messages := await reader.poll(1.0)):
                    pass
        assert messages[0].body == b"%d" % SIZE

    asyncio.run(main())
    assert spoiled == [SIZE]
    assert f"cannot be read now: byte {len(BEFORE)}: no record starts here" in caplog.text
