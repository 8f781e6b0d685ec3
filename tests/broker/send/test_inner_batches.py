"""Topics with batch consume queues over the wire: made, sent to, pulled, popped, given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats import inner_batch, sys_flag
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.message_id import decode_message_id
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.admin import TopicNameHeader
from mqlake.protocol.headers.offsets import OffsetHeader, QueueHeader, SearchOffsetHeader
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION
from mqlake.protocol.headers.send import SendBackHeader, SendMessageResponseHeader
from tests import simulated
from tests.broker.admin.asking import done, refused, wanted
from tests.broker.pop.popping import acknowledge, pop
from tests.broker.pull.pulls import pull
from tests.broker.running import Running, running, to

MAKE = RequestCode.UPDATE_AND_CREATE_TOPIC
BATCH_QUEUES = "+queue.type=BatchCQ"


def body(first: int, count: int) -> bytes:
    return encode_batch(
        (number, b"%d" % number, f"UNIQ_KEY\x01KEY{number}\x02TAGS\x01t\x02".encode())
        for number in range(first, first + count)
    )


async def make(broker: Running) -> None:
    await done(broker, MAKE, wanted("Orders", attributes=BATCH_QUEUES))


async def send(
    broker: Running, first: int, count: int, properties: str = "UNIQ_KEY\x01WHOLE\x02"
) -> Command:
    header = to("Orders", properties=properties, batch=True)
    answer = await broker.ask(RequestCode.SEND_BATCH_MESSAGE, header, body(first, count))
    broker.state.store.core.tick()
    return answer


def test_a_batch_is_stored_as_one_record_and_pulled_whole(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, maxTransferCountOnMessageInMemory=100) as broker:
            await make(broker)
            at_0 = QueueHeader(topic="Orders", queue_id=0)
            least = await done(broker, RequestCode.GET_MIN_OFFSET, at_0)
            assert least.header(OffsetHeader).offset == -1
            for number in range(10):
                answer = await send(broker, 10 * number, 10)
                told = answer.header(SendMessageResponseHeader)
                assert told.queue_offset == 10 * number
                assert told.batch_unique_key == told.transaction_id == "WHOLE"
                assert decode_message_id(told.msg_id)[0] == broker.address
            found = await pull(broker, 5, max_msg_nums=100)
            assert (found.offsets.min_offset, found.offsets.max_offset) == (0, 100)
            assert found.offsets.next_begin_offset == 100
            assert [record.queue_offset for record in found.records] == [*range(0, 100, 10)]
            flags = sys_flag.INNER_BATCH | sys_flag.NEED_UNWRAP
            assert {record.sys_flag for record in found.records} == {flags}
            inner = [part for record in found.records for part in inner_batch.parts(record.body)]
            assert [flag for flag, *_ in inner] == [*range(100)]
            assert [text for _, text, _ in inner] == [b"%d" % number for number in range(100)]
            least = await done(broker, RequestCode.GET_MIN_OFFSET, at_0)
            assert least.header(OffsetHeader).offset == 0
            most = await done(broker, RequestCode.GET_MAX_OFFSET, at_0)
            assert most.header(OffsetHeader).offset == 100
            late = SearchOffsetHeader(topic="Orders", queue_id=0, timestamp=1 << 50)
            at = await done(broker, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, late)
            assert at.header(OffsetHeader).offset == 100

    simulated.run(run())


def test_a_batch_without_a_key_is_stored_message_by_message(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await make(broker)
            told = (await send(broker, 0, 3, "")).header(SendMessageResponseHeader)
            assert len(told.msg_id.split(",")) == 3
            assert told.batch_unique_key is None
            assert (await broker.send(to("Orders"), b"3")).code == ResponseCode.SUCCESS
            broker.state.store.core.tick()
            found = await pull(broker, 0)
            assert found.bodies == [b"0", b"1", b"2", b"3"]
            assert [record.queue_offset for record in found.records] == [0, 1, 2, 3]

    simulated.run(run())


def test_a_batch_to_a_topic_of_simple_queues_is_none(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await done(broker, MAKE, wanted("Orders"))
            told = (await send(broker, 0, 3)).header(SendMessageResponseHeader)
            assert len(told.msg_id.split(",")) == 3
            assert (await pull(broker, 1)).bodies == [b"1", b"2"]

    simulated.run(run())


@pytest.mark.parametrize(("expression", "found"), [("a > 1", [3]), ("a = 1", [0, 6])])
def test_conditions_are_about_the_whole_batch(
    tmp_path: Path, expression: str, found: list[int]
) -> None:
    async def run() -> None:
        async with running(tmp_path, enablePropertyFilter=True) as broker:
            await make(broker)
            for first, value in ((0, 1), (3, 2), (6, 1)):
                await send(broker, first, 3, f"UNIQ_KEY\x01K\x02a\x01{value}\x02")
            answer = await pull(
                broker,
                0,
                sys_flag=HAS_SUBSCRIPTION,
                subscription=expression,
                expression_type="SQL92",
            )
            assert [record.queue_offset for record in answer.records] == found
            assert answer.offsets.next_begin_offset == 9

    simulated.run(run())


def test_the_kind_of_queues_cannot_change(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await make(broker)
            for change in ("+queue.type=SimpleCQ", "-queue.type"):
                await refused(broker, MAKE, wanted("Orders", attributes=change), match="unchange")
            await make(broker)
            await done(broker, RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader(topic="Orders"))
            await done(broker, MAKE, wanted("Orders"))

    simulated.run(run())


def test_one_message_of_a_batch_is_given_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await make(broker)
            _, offset = decode_message_id(
                (await send(broker, 0, 5)).header(SendMessageResponseHeader).msg_id
            )

            def back(key: str) -> SendBackHeader:
                return SendBackHeader(
                    offset=offset, group="group", delay_level=1, origin_msg_id=key
                )

            code = RequestCode.CONSUMER_SEND_MSG_BACK
            await done(broker, code, back("KEY3"))
            (again,) = broker.records(SCHEDULE_TOPIC, 0)
            assert (again.body, again.flag, again.sys_flag) == (b"3", 3, 0)
            assert again.properties["UNIQ_KEY"] == "KEY3"
            # Clients then send the message themselves.
            await refused(broker, code, back("WHOLE"), match="no message WHOLE in the inner batch")

    simulated.run(run())


def test_a_batch_is_popped_and_acknowledged_as_one_message(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await make(broker)
            for first in range(0, 9, 3):
                await send(broker, first, 3)
            # The group stands within a batch, as one that has pulled may.
            broker.state.store.core.config.consumer_offsets.commit("group", "Orders", 0, 4)
            popped = await pop(broker)
            assert [one.record.queue_offset for one in popped] == [3, 6]
            assert [one.record.body for one in popped] == [body(3, 3), body(6, 3)]
            await acknowledge(broker, *popped)
            assert await pop(broker) == []

    simulated.run(run())
