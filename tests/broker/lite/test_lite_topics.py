"""Lite topics over the wire: sends, subscriptions, pops, and what administrators see."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.broker.state.lite.names import queue_name
from mqlake.broker.state.lite.next_offsets import NextOffsets
from mqlake.formats.config.topics import Topic
from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.bodies.lite import (
    BrokerLiteInfo,
    LiteClientInfo,
    LiteGroupInfo,
    LiteOffsetOption,
    LiteTopicInfo,
    ParentTopicInfo,
)
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import TopicNameHeader
from mqlake.protocol.headers.lite import (
    LiteClientHeader,
    LiteGroupHeader,
    LiteTopicHeader,
    ParentTopicHeader,
    PopLiteAnswerHeader,
    TriggerLiteDispatchHeader,
)
from mqlake.store.settings import BrokerRole
from tests import simulated
from tests.broker.lite.lites import (
    GROUP,
    TOPIC,
    LiteClient,
    lite_broker,
    make_group,
    popped,
    send,
)
from tests.broker.running import running, to
from tests.broker.slave.pairs import switch


def test_a_subscriber_gets_the_messages_of_its_lite_topics_in_order(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            assert (await client.change("PARTIAL_ADD", "a", "b")).code == ResponseCode.SUCCESS
            for number in range(3):
                for lite in ("a", "b", "c"):
                    assert (await send(broker, lite, f"{lite}{number}")).code == 0
            answer = await client.pop()
            found = popped(answer)
            by_lite = {
                lite: [r.body.decode() for r, _ in found if r.properties["__LITE_TOPIC"] == lite]
                for lite in ("a", "b", "c")
            }
            assert by_lite == {"a": ["a0", "a1", "a2"], "b": ["b0", "b1", "b2"], "c": []}
            assert await client.bodies() == []
            for record, receipt in found:
                assert (await client.ack(record, receipt)).code == ResponseCode.SUCCESS
            await send(broker, "a", "a3")
            assert await client.bodies() == ["a3"]

    simulated.run(check())


def test_a_waiting_pop_is_answered_by_a_send(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            await client.change("COMPLETE_ADD", "a")
            waiting = asyncio.create_task(client.pop(poll=20_000))
            await asyncio.sleep(1)
            assert not waiting.done()
            await send(broker, "a", "now")
            answer = await waiting
            assert [record.body for record, _ in popped(answer)] == [b"now"]
            assert (await client.pop(poll=5_000)).code == ResponseCode.POLLING_TIMEOUT

    simulated.run(check())


def test_an_unacknowledged_message_blocks_its_lite_topic_until_it_is_visible(
    tmp_path: Path,
) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a")
            await send(broker, "a", "0")
            ((record, receipt),) = popped(await client.pop(invisible=30_000))
            await send(broker, "a", "1")
            assert await client.bodies() == []
            again = await client.pop(poll=60_000)
            found = popped(again)
            assert [each.body for each, _ in found] == [b"0", b"1"]
            assert again.header(PopLiteAnswerHeader).order_count_info == "1;0"
            # The first pop no longer has the queue.
            assert (await client.ack(record, receipt)).code == ResponseCode.SUCCESS
            assert await client.bodies() == []
            changed = await client.change_time(*found[0], 1000)
            assert changed.code == ResponseCode.SUCCESS
            await client.ack(*found[1])
            assert [each.body for each, _ in popped(await client.pop(poll=60_000))] == [b"0", b"1"]

    simulated.run(check())


def test_two_clients_share_or_the_newest_one_takes_over(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            make_group(broker, "single", lite_sub_model="Exclusive")
            one, two = LiteClient(broker, "c1"), LiteClient(broker, "c2")
            for client in (one, two):
                await client.change("PARTIAL_ADD", "a", "b", "c", "d")
            for lite in "abcd":
                await send(broker, lite, lite)
            found = await one.bodies() + await two.bodies()
            assert sorted(found) == ["a", "b", "c", "d"]
            old, new = LiteClient(broker, "e1", "single"), LiteClient(broker, "e2", "single")
            await old.change("PARTIAL_ADD", "a")
            await new.change("PARTIAL_ADD", "a")
            await send(broker, "a", "last")
            assert await old.bodies() == []
            assert "last" in await new.bodies()
            # It does not know yet, and repeats what it has.
            await old.change("COMPLETE_ADD", "a")
            subscribers = broker.state.lite.subscriptions.subscribers(f"%LMQ%${TOPIC}$a", "single")
            assert [each.client_id for each in subscribers] == ["e2"]

    simulated.run(check())


@pytest.mark.parametrize(
    ("option", "bodies"),
    [
        (LiteOffsetOption("POLICY", 1), ["0", "1", "2"]),
        (LiteOffsetOption("POLICY", 2), []),
        (LiteOffsetOption("OFFSET", 1), ["1", "2"]),
        (LiteOffsetOption("TAIL_N", 1), ["0", "1", "2"]),
        (None, ["0", "1", "2"]),
    ],
)
def test_a_subscription_may_say_where_the_group_begins(
    tmp_path: Path, option: LiteOffsetOption | None, bodies: list[str]
) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            for number in range(3):
                await send(broker, "a", str(number))
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a", option=option)
            assert await client.bodies() == bodies

    simulated.run(check())


@pytest.mark.parametrize("value", [2**62, 2**63 - 1, 2**63, 10**30])
def test_a_group_that_begins_anywhere_does_no_harm_to_others(tmp_path: Path, value: int) -> None:
    """The first offset of a lite topic without messages is that of the group that is furthest."""

    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            make_group(broker, "others")
            far, other = LiteClient(broker), LiteClient(broker, "c2", "others")
            await far.change("PARTIAL_ADD", "a", option=LiteOffsetOption("OFFSET", value))
            await other.change("PARTIAL_ADD", "a")
            for number in range(3):
                await send(broker, "a", str(number))
            assert await other.bodies() == ["0", "1", "2"]
            assert await far.bodies() == ["0", "1", "2"]

    simulated.run(check())


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**63 - 1])
def test_an_offset_in_a_file_that_is_none_does_no_harm(tmp_path: Path, offset: int) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            queue = f"%LMQ%${TOPIC}$a"
            table = {f"{queue}@others": {0: offset}}
            offsets = broker.state.store.config.consumer_offsets
            for _ in offsets.follow(table, offsets.version):
                pass
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a")
            for number in range(3):
                await send(broker, "a", str(number))
            bodies = await client.bodies()
            assert bodies == ["0", "1", "2"]

    simulated.run(check())


def test_subscriptions_end(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client, lite = LiteClient(broker), broker.state.lite
            await client.change("PARTIAL_ADD", "a", "b")
            await client.change("PARTIAL_REMOVE", "a")
            await send(broker, "a", "a")
            await send(broker, "b", "b")
            assert await client.bodies() == ["b"]
            await client.change("COMPLETE_REMOVE")
            assert lite.subscriptions.count == 0
            await client.change("COMPLETE_ADD", "a")
            await asyncio.sleep(4 * 60)
            assert lite.subscriptions.count == 0

    simulated.run(check())


def test_messages_survive_a_restart(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a")
            for number in range(3):
                await send(broker, "a", str(number))
            ((record, receipt),) = popped(await client.pop(count=1))
            await client.ack(record, receipt)
        async with lite_broker(tmp_path) as broker:
            await send(broker, "a", "3")
            client = LiteClient(broker)
            await client.change("COMPLETE_ADD", "a")
            assert await client.bodies() == ["1", "2", "3"]

    simulated.run(check())


def test_expired_lite_topics_are_forgotten(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path, minutes=15) as broker:
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a")
            await send(broker, "a", "old")
            ((record, receipt),) = popped(await client.pop())
            await client.ack(record, receipt)
            queue = f"%LMQ%${TOPIC}$a"
            offsets = broker.state.store.config.consumer_offsets
            assert offsets.query(GROUP, queue, 0) == 1
            for _ in range(20):
                await asyncio.sleep(60)
                await client.change("COMPLETE_ADD", "a")
            assert offsets.query(GROUP, queue, 0) is None
            await client.change("PARTIAL_ADD", "a")
            assert await client.bodies() == []
            await send(broker, "a", "new")
            assert await client.bodies() == ["new"]

    simulated.run(check())


def test_administrators_see_lite_topics(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a", "b")
            for number in range(3):
                await send(broker, "a", str(number))
            found = popped(await client.pop(count=2))
            await client.ack(*found[0])
            ask = broker.ask
            answer = await ask(RequestCode.GET_BROKER_LITE_INFO)
            info = decode_body(BrokerLiteInfo, answer.body)
            assert (info.current_lmq_num, info.lite_subscription_count) == (1, 2)
            assert info.topic_meta == {TOPIC: 60}
            assert info.group_meta == {TOPIC: [GROUP]}
            answer = await ask(RequestCode.GET_PARENT_TOPIC_INFO, ParentTopicHeader(topic=TOPIC))
            parent = decode_body(ParentTopicInfo, answer.body)
            assert (parent.lite_topic_count, parent.groups, parent.ttl) == (1, [GROUP], 60)
            header = LiteTopicHeader(parent_topic=TOPIC, lite_topic="a")
            answer = await ask(RequestCode.GET_LITE_TOPIC_INFO, header)
            topic = decode_body(LiteTopicInfo, answer.body)
            assert (topic.topic_offset.min_offset, topic.topic_offset.max_offset) == (0, 3)
            assert [each.client_id for each in topic.subscriber] == ["c1"]
            client_header = LiteClientHeader(parent_topic=TOPIC, group=GROUP, client_id="c1")
            answer = await ask(RequestCode.GET_LITE_CLIENT_INFO, client_header)
            assert decode_body(LiteClientInfo, answer.body).lite_topic_count == 2
            answer = await ask(RequestCode.GET_LITE_GROUP_INFO, LiteGroupHeader(group=GROUP))
            group = decode_body(LiteGroupInfo, answer.body)
            assert group.total_lag_count == 2
            assert group.lag_count_top_k is not None
            assert [each.lite_topic for each in group.lag_count_top_k] == ["a"]
            one = LiteGroupHeader(group=GROUP, lite_topic="a")
            answer = await ask(RequestCode.GET_LITE_GROUP_INFO, one)
            offsets = decode_body(LiteGroupInfo, answer.body).lite_topic_offset_wrapper
            assert offsets is not None
            assert (offsets.broker_offset, offsets.consumer_offset) == (3, 1)
            trigger = TriggerLiteDispatchHeader(group=GROUP)
            assert (await ask(RequestCode.TRIGGER_LITE_DISPATCH, trigger)).code == 0

    simulated.run(check())


def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client, illegal = LiteClient(broker), ResponseCode.ILLEGAL_OPERATION
            assert (await LiteClient(broker, group="none").pop()).code == (
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            )
            assert (await client.pop(count=33)).code == ResponseCode.INVALID_PARAMETER
            assert (await LiteClient(broker, group="none").change("PARTIAL_ADD", "a")).code == (
                illegal
            )
            assert (await client.change("WHAT", "a")).code == illegal
            assert (await broker.ask(RequestCode.LITE_SUBSCRIPTION_CTL)).code == illegal
            assert (await send(broker, "a b", "x")).code == ResponseCode.MESSAGE_ILLEGAL
            topic = LiteTopicHeader(parent_topic="None", lite_topic="a")
            answer = await broker.ask(RequestCode.GET_LITE_TOPIC_INFO, topic)
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST

    simulated.run(check())


def test_without_enable_lmq_lite_topics_are_refused(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            answer = await broker.send(to("Orders", properties="__LITE_TOPIC\x01a\x02"))
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            assert "enableLmq" in (answer.remark or "")

    simulated.run(check())


@pytest.mark.parametrize("refused", [1, 40])
def test_refused_sends_take_no_offset(tmp_path: Path, refused: int) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a")
            await send(broker, "a", "one")
            most, long = broker.state.store.appends.largest_record, "k" * 32_000
            for number in range(refused):
                header = to(TOPIC, properties=f"__LITE_TOPICaKEYS{long}")
                answer = await broker.send(header, b"x" * (most if number else 1))
                assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            await send(broker, "a", "two")
            for expected in ("one", "two"):
                ((record, receipt),) = popped(await client.pop(1))
                assert record.body.decode() == expected
                assert (await client.ack(record, receipt)).code == ResponseCode.SUCCESS
            assert record.properties["INNER_MULTI_QUEUE_OFFSET"] == "1"

    simulated.run(check())


@pytest.mark.parametrize("bodies", [1, 40])
def test_messages_after_sends_that_failed_are_delivered(tmp_path: Path, bodies: int) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a")
            await send(broker, "a", "one")
            for _ in range(bodies):
                # Larger than maxMessageSize: only the store refuses it.
                answer = await send(
                    broker, "a", "x" * (broker.broker.settings.max_message_size + 1)
                )
                assert answer.code != ResponseCode.SUCCESS
            await send(broker, "a", "two")
            for expected in ("one", "two"):
                ((record, receipt),) = popped(await client.pop(1))
                assert record.body.decode() == expected
                assert (await client.ack(record, receipt)).code == ResponseCode.SUCCESS

    simulated.run(check())


@pytest.mark.parametrize(
    "pair",
    [
        "DELAY1",
        "TIMER_DELAY_MS1000",
        "TIMER_DELAY_SEC1",
        "TIMER_DELIVER_MS1900000000000",
        "TRAN_MSGtrue",
    ],
)
def test_messages_that_would_wait_are_refused(tmp_path: Path, pair: str) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            header = to(TOPIC, properties=f"__LITE_TOPICa{pair}PGROUPp")
            answer = await broker.send(header)
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            assert pair.partition("")[0] in (answer.remark or "")

    simulated.run(check())


def test_what_is_sent_to_a_retry_topic_has_no_place(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            header = to(f"%RETRY%{GROUP}", properties="__LITE_TOPICa")
            assert (await broker.send(header)).code == ResponseCode.SUCCESS
            (record,) = broker.records(f"%RETRY%{GROUP}")
            assert "INNER_MULTI_DISPATCH" not in record.properties

    simulated.run(check())


@pytest.mark.parametrize("is_batch", [False, True])
def test_producers_cannot_say_where_a_message_is(tmp_path: Path, is_batch: bool) -> None:
    forged = f"INNER_MULTI_DISPATCH%LMQ%${TOPIC}$aINNER_MULTI_QUEUE_OFFSET9"

    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a")
            await send(broker, "a", "one")
            if is_batch:
                body = encode_batch([(0, b"forged", forged.encode())])
                header = to(TOPIC, batch=True, properties="UNIQ_KEYK")
                answer = await broker.ask(RequestCode.SEND_BATCH_MESSAGE, header, body)
            else:
                answer = await broker.send(to(TOPIC, properties=forged), b"forged")
            assert answer.code == ResponseCode.SUCCESS
            await send(broker, "a", "two")
            assert await client.bodies() == ["one", "two"]

    simulated.run(check())


def test_the_next_offsets_outlive_the_deletion_of_other_topics(tmp_path: Path) -> None:
    """A search would not find messages that wait for dispatch, and give their offsets again."""

    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            queues, name = broker.state.lite.queues, queue_name(TOPIC, "a")
            assert [queues.take_offset(TOPIC, name, bool).offset for _ in range(2)] == [0, 1]
            broker.state.topics.put(Topic("Other"))
            deleted = await broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader("Other"))
            assert deleted.code == ResponseCode.SUCCESS
            assert queues.take_offset(TOPIC, name, bool).offset == 2
            await broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader(TOPIC))
            assert queues.take_offset(TOPIC, name, bool).offset == 0

    simulated.run(check())


def test_no_offset_is_given_while_messages_of_an_earlier_role_wait_for_dispatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            await send(broker, "a", "a0")
            queues, name = broker.state.lite.queues, queue_name(TOPIC, "a")
            marks = broker.state.store.watermarks
            with monkeypatch.context() as patch:
                patch.setattr(type(marks), "dispatched", property(lambda _: 0))
                queues.forget_all()
                with pytest.raises(RemotingError, match="wait for dispatch"):
                    queues.take_offset(TOPIC, name, bool)
            assert queues.take_offset(TOPIC, name, bool).offset == 1

    simulated.run(check())


def test_a_new_master_searches_the_next_offsets_again(tmp_path: Path) -> None:
    """Another master may have put messages meanwhile."""

    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            await send(broker, "a", "a0")
            queues, name = broker.state.lite.queues, queue_name(TOPIC, "a")
            given = [queues.take_offset(TOPIC, name, bool).offset for _ in range(2)]
            switch(broker, BrokerRole.SLAVE, 1)
            switch(broker, BrokerRole.ASYNC_MASTER, 0)
            assert given == [1, 2]
            assert queues.take_offset(TOPIC, name, bool).offset == 1

    simulated.run(check())


@pytest.mark.parametrize(("action", "most"), [("PARTIAL_REMOVE", 0), ("PARTIAL_ADD", 5)])
def test_clients_without_lite_topics_are_limited(tmp_path: Path, action: str, most: int) -> None:
    async def check() -> None:
        async with running(tmp_path, enableLmq=True, maxLiteSubscriptionCount=10) as broker:
            broker.state.topics.put(Topic(TOPIC, attributes={"message.type": "LITE"}))
            make_group(broker, GROUP)
            for number in range(20):
                await LiteClient(broker, f"c{number}").change(action)
            assert len(broker.state.lite.subscriptions.of_group(GROUP)) <= most

    simulated.run(check())


def test_a_lite_topic_counts_once_its_offset_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            await send(broker, "a", "a0")
            room = broker.state.lite.room
            assert room.count() == 1

            def fail(*_: object) -> None:
                raise MemoryError

            with monkeypatch.context() as patch:
                patch.setattr(NextOffsets, "put", fail)
                assert (await send(broker, "b", "b0")).code == ResponseCode.SYSTEM_ERROR
            assert room.count() == 1
            assert (await send(broker, "b", "b0")).code == ResponseCode.SUCCESS
            assert room.count() == 2

    simulated.run(check())
