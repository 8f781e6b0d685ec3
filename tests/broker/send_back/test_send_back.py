"""Messages that consumers give back, by request or as a send to their retry topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.broker.state.stats import DEAD_LETTERS, SEND_BACK
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ, Topic
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.message_id import decode_message_id
from mqlake.formats.record import Record
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.send import SendBackHeader, SendMessageResponseHeader
from tests import simulated
from tests.broker.running import Running, running, to
from tests.store.record_crcs import without_crc


async def put(broker: Running, **fields: object) -> Record:
    """Send a message and return its record."""
    properties = "UNIQ_KEY\x01ABC\x02TAGS\x01new\x02"
    answer = await broker.send(to("Orders", properties=properties, flag=5, **fields), b"body")
    _, offset = decode_message_id(answer.header(SendMessageResponseHeader).msg_id)
    record = broker.state.store.record_at(offset)
    assert record is not None
    return record


async def give_back(broker: Running, record: Record, level: int, **fields: int) -> Command:
    header = SendBackHeader(
        offset=record.physical_offset, group="group", delay_level=level, **fields
    )
    return await broker.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)


@pytest.mark.parametrize(("asked", "returns", "level"), [(2, 0, 2), (0, 0, 3), (0, 4, 7)])
def test_a_message_comes_again_later(tmp_path: Path, asked: int, returns: int, level: int) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            record = await put(broker, reconsume_times=returns)
            assert (await give_back(broker, record, asked)).code == ResponseCode.SUCCESS

            (again,) = broker.records(SCHEDULE_TOPIC, level - 1)
            assert again.body == b"body"
            assert again.flag == 5
            assert again.born_host == record.born_host
            assert again.reconsume_times == returns + 1
            assert without_crc(again.properties) == without_crc(record.properties) | {
                "REAL_TOPIC": "%RETRY%group",
                "REAL_QID": "0",
                "DELAY": str(level),
                "RETRY_TOPIC": "Orders",
                "ORIGIN_MESSAGE_ID": record.message_id,
            }
            retry = broker.state.topics.get("%RETRY%group")
            assert retry is not None
            assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (1, 1, 6)

    simulated.run(run())


def test_a_message_given_back_twice_keeps_its_origin(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, messageDelayLevel="1s 2s") as broker:
            record = await put(broker)
            await give_back(broker, record, 1)
            (again,) = broker.records(SCHEDULE_TOPIC, 0)
            await give_back(broker, again, 2)
            found = broker.state.stats.find(SEND_BACK, "Orders@group")
            assert found is not None
            assert found.stats_day.sum == 2
            (last,) = broker.records(SCHEDULE_TOPIC, 1)
            assert last.reconsume_times == 2
            assert last.properties["RETRY_TOPIC"] == "Orders"
            assert last.properties["ORIGIN_MESSAGE_ID"] == record.message_id

    simulated.run(run())


@pytest.mark.parametrize(
    ("returns", "fields", "is_dead"),
    [
        (15, {}, False),
        (16, {}, True),
        (2, {"max_reconsume_times": 3}, False),
        (3, {"max_reconsume_times": 3}, True),
    ],
)
def test_a_message_that_came_too_often_is_dead(
    tmp_path: Path, returns: int, fields: dict[str, int], is_dead: bool
) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            record = await put(broker, reconsume_times=returns)
            assert (await give_back(broker, record, 1, **fields)).code == ResponseCode.SUCCESS
            dead = broker.records("%DLQ%group")
            assert len(dead) == is_dead
            assert len(broker.records(SCHEDULE_TOPIC, 0)) == (not is_dead)
            if is_dead:
                assert dead[0].body == b"body"
                assert dead[0].properties["RETRY_TOPIC"] == "Orders"
                assert dead[0].properties["DELAY"] == "0"

    simulated.run(run())


def test_a_consumer_may_give_a_message_up_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            record = await put(broker)
            assert (await give_back(broker, record, -1)).code == ResponseCode.SUCCESS
            assert len(broker.records("%DLQ%group")) == 1

    simulated.run(run())


def test_a_group_without_retry_queues_drops_what_it_gives_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            broker.state.groups.put(SubscriptionGroup("group", retry_queue_nums=0))
            record = await put(broker)
            assert (await give_back(broker, record, 1)).code == ResponseCode.SUCCESS
            assert broker.state.topics.get("%RETRY%group") is None

    simulated.run(run())


def test_what_cannot_be_given_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, autoCreateSubscriptionGroup=False) as broker:
            record = await put(broker)
            answer = await give_back(broker, record, 1)
            assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST

            broker.state.groups.put(SubscriptionGroup("group"))
            for offset in (-1, 1, 1 << 40):
                header = SendBackHeader(offset=offset, group="group", delay_level=0)
                answer = await broker.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)
                assert answer.code == ResponseCode.SYSTEM_ERROR
                assert answer.remark == f"look message by offset failed, {offset}"

            broker.state.topics.put(Topic("%RETRY%group", perm=PERM_READ))
            answer = await give_back(broker, record, 1)
            assert answer.code == ResponseCode.NO_PERMISSION

    simulated.run(run())


@pytest.mark.parametrize(
    ("returns", "most", "topic"),
    [(3, 3, "%RETRY%group"), (4, 3, "%DLQ%group"), (17, None, "%DLQ%group")],
)
def test_a_send_to_a_retry_topic_counts_too(
    tmp_path: Path, returns: int, most: int | None, topic: str
) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            header = to("%RETRY%group", reconsume_times=returns, max_reconsume_times=most)
            header.properties = "UNIQ_KEY\x01ABC\x02DELAY\x013\x02" if topic[1] == "D" else None
            answer = await broker.send(header)
            assert answer.code == ResponseCode.SUCCESS
            (record,) = broker.records(topic)
            assert record.reconsume_times == returns
            assert record.properties.get("DELAY") == ("0" if topic[1] == "D" else None)

    simulated.run(run())


def test_a_dead_letter_is_counted_once_it_is_put(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:

            def counted() -> list[int]:
                return list(broker.state.stats.counted(DEAD_LETTERS).values())

            header = to("%RETRY%group", reconsume_times=17)
            header.properties = "TIMER_DELIVER_MS\x0199999999999999\x02"
            assert (await broker.send(header)).code == ResponseCode.MESSAGE_ILLEGAL
            assert counted() == []

            header.properties = None
            assert (await broker.send(header)).code == ResponseCode.SUCCESS
            assert counted() == [1]

    simulated.run(run())


def test_what_an_ordered_consumer_sends_to_its_retry_topic_is_dead(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            queue = MessageQueue("Orders", "broker-a", 0)
            broker.state.locks.lock("group", "client", queue)
            await broker.send(to("%RETRY%group"))
            assert len(broker.records("%DLQ%group")) == 1

            broker.state.locks.unlock("group", "client", queue)
            await broker.send(to("%RETRY%group"))
            assert len(broker.records("%RETRY%group")) == 1

    simulated.run(run())


@pytest.mark.parametrize(("first", "then"), [(1, 2), (1, 7), (3, 1), (2, 5)])
def test_no_message_is_put_to_a_queue_that_no_route_shows(
    tmp_path: Path, first: int, then: int
) -> None:
    async def run() -> None:
        async with running(tmp_path, messageDelayLevel="1s") as broker:
            groups, topics = broker.state.groups, broker.state.topics
            record = await put(broker)
            for count in (first, then):
                groups.put(SubscriptionGroup(group_name="group", retry_queue_nums=count))
                for _ in range(20):
                    answer = await give_back(broker, record, 1)
                    assert answer.code == ResponseCode.SUCCESS
            retry = topics.get("%RETRY%group")
            assert retry is not None
            # Queues that may have messages stay.
            assert retry.read_queue_nums == retry.write_queue_nums == max(first, then)
            asked = {
                int(again.properties["REAL_QID"]) for again in broker.records(SCHEDULE_TOPIC, 0)
            }
            assert asked <= set(range(max(first, then)))
            assert len(asked) > 1 or max(first, then) == 1

    simulated.run(run())
