"""The parts of producers and consumers that need no broker."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.client import Message, MessageQueue, NoRouteError, Sql
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.inbox import Inbox
from mqlake.client.consumer.local_offsets import LocalOffsets
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.message_json import message_from_json, message_to_json
from mqlake.client.producer.flow import FlowControl
from mqlake.client.producer.outgoing import Outgoings
from mqlake.client.producer.queue_choice import QueueChoice, by_sharding_key
from mqlake.client.producer.result import SendResult, SendResults, SendStatus
from mqlake.client.routes import TopicRoute
from mqlake.client.timers import Timer
from mqlake.errors import FormatError
from mqlake.formats.java_string import hash_code
from mqlake.formats.message_batch import decode_batch
from mqlake.formats.message_id import UniqueKey
from mqlake.formats.properties import UNIQ_KEY, decode_properties
from mqlake.formats.sys_flag import COMPRESSED, COMPRESSION_LZ4, COMPRESSION_ZLIB
from mqlake.protocol.bodies.route import BrokerData, QueueData, TopicRouteData
from mqlake.protocol.messages.body_compression import compress, decompress
from mqlake.protocol.unique_keys import UniqueKeys
from mqlake.storage.clock import SystemClock
from tests import simulated
from tests.until import until

QUEUE = MessageQueue("t", "a", 0)
KEYS = UniqueKeys("10.0.0.1:0", SystemClock())


def consumed(offset: int, body: bytes = b"x") -> ConsumedMessage:
    return ConsumedMessage(
        topic="t",
        body=body,
        queue=QUEUE,
        queue_offset=offset,
        physical_offset=0,
        encoded_properties=b"",
        flag=0,
        sys_flag=0,
        born_timestamp=0,
        born_address=b"",
        store_timestamp=0,
        store_address=b"",
        reconsume_times=0,
    )


# Bodies


@given(st.binary(max_size=5000), st.sampled_from(("zlib", "lz4", "zstd")))
def test_compressed_bodies_are_decompressed(body: bytes, codec: str) -> None:
    packed, flag = compress(body, codec, 3)  # type: ignore[arg-type]
    assert decompress(packed, flag) == body


def test_producers_before_compression_types_mean_zlib() -> None:
    assert decompress(zlib.compress(b"old"), COMPRESSED) == b"old"


@pytest.mark.parametrize(
    ("body", "flag"),
    [
        (b"no zlib", COMPRESSED | COMPRESSION_ZLIB),
        (zlib.compress(b"cut off" * 99)[:-3], COMPRESSED | COMPRESSION_ZLIB),
        (zlib.compress(bytes(1001)), COMPRESSED | COMPRESSION_ZLIB),
        (b"no lz4", COMPRESSED | COMPRESSION_LZ4),
        (compress(bytes(1001), "zstd", 3)[0], compress(b"", "zstd", 3)[1]),
        (b"", COMPRESSED | 7 << 8),
    ],
)
def test_invalid_compressed_bodies_are_refused(body: bytes, flag: int) -> None:
    with pytest.raises(FormatError):
        decompress(body, flag, longest=1000)


# Queues of a consumer


def test_an_offset_never_passes_an_unfinished_message() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=False)
    assert held.committed_offset is None
    messages = [consumed(offset) for offset in (5, 6, 9)]
    held.add(messages, 12)
    assert (held.committed_offset, held.span, held.bytes) == (5, 4, 3)
    assert list(held.take(2)) == messages[:2]
    held.finish(messages[1])
    assert held.committed_offset == 5
    held.finish(messages[0])
    assert held.committed_offset == 9
    held.finish(held.take(9)[0])
    assert (held.committed_offset, len(held), held.bytes, held.take(1)) == (12, 0, 0, ())


def test_a_broker_that_answers_with_other_offsets_moves_nothing_back() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=False)
    held.add([consumed(5)], 6)
    (first,) = held.take(1)
    held.finish(first)
    later, late = consumed(8), consumed(7)
    held.add([later, late, consumed(5), consumed(4)], 9)
    assert list(held.take(9)) == [late, later]
    held.finish(later)
    assert held.committed_offset == 7
    held.finish(late)
    assert held.committed_offset == 9


def test_an_ordered_queue_waits_for_its_unfinished_messages() -> None:
    now = 0.0
    held = QueueMessages(QUEUE, lambda: now, in_order=True)
    assert not held.is_locked
    first, second = consumed(0), consumed(1)
    held.add((first, second), 2)
    assert held.take(1) == ()  # not locked
    held.locked_until = 30.0
    assert list(held.take(1)) == [first]
    assert held.take(1) == ()
    held.give_back(first, 1)
    held.suspended_until = 1.0
    assert held.take(1) == ()
    now = 1.0
    again, then = held.take(2)
    assert (again.queue_offset, again.reconsume_times, then) == (0, 1, second)
    assert not held.is_out(first)
    held.finish(again)
    assert not held.is_ready
    held.drop()
    assert not held.is_out(second)
    assert held.committed_offset is None


def test_only_the_latest_delivery_of_a_message_finishes_it() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=False)
    held.add([consumed(offset) for offset in range(4)], 4)
    batch = held.take(3)
    for message in batch:  # given back one after the other: they keep their order
        held.give_back(message, 1)
    assert not any(held.is_out(message) for message in batch)
    assert [message.queue_offset for message in held.take(9)] == [0, 1, 2, 3]
    assert not any(held.is_out(message) for message in batch)
    assert held.committed_offset == 0


def test_a_parked_message_belongs_to_nobody() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=True)
    held.locked_until = 30.0
    held.add([consumed(0), consumed(1)], 2)
    (first,) = held.take(1)
    held.park(first)
    assert (held.is_out(first), held.is_parked(first)) == (False, True)
    assert (held.has_out, held.is_ready, held.out_since(1.0)) == (True, False, [])
    held.give_back(first, 1)
    (again,) = held.take(1)
    assert (held.is_parked(first), held.is_parked(again), held.is_out(again)) == (
        False,
        False,
        True,
    )
    held.park(again)
    held.finish(again)
    assert (held.committed_offset, held.has_out, held.is_ready) == (1, False, True)


def test_a_restart_waits_for_handlers_in_order() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=True)
    held.locked_until = 30.0
    held.add([consumed(5), consumed(6)], 7)
    (old,) = held.take(1)
    held.restart(2, {old})
    assert (held.committed_offset, len(held), held.bytes, held.is_out(old)) == (2, 0, 0, False)
    held.add([consumed(2)], 3)
    assert (held.has_out, held.take(1)) == (True, ())
    assert held.release(old)
    assert not held.release(old)
    assert [message.queue_offset for message in held.take(1)] == [2]


def test_the_inbox_takes_queues_by_turns_and_wakes_one() -> None:
    async def run() -> None:
        inbox, queues = Inbox(), [MessageQueue("t", "a", number) for number in range(2)]
        held = [QueueMessages(queue, lambda: 0.0, in_order=False) for queue in queues]
        waiting = asyncio.create_task(inbox.take(1))
        await asyncio.sleep(0)
        waiting.cancel()
        for each in held:
            each.add([consumed(0), consumed(1)], 2)
            inbox.offer(each)
            inbox.offer(each)
        order = [(await inbox.take(1) or (None,))[0] for _ in range(4)]
        assert order == [*held, *held]
        late = asyncio.create_task(inbox.take(1))
        await asyncio.sleep(0)
        inbox.close()
        assert await late is None
        assert await inbox.take(1) is None

    simulated.run(run())


def test_local_offsets_are_in_the_file_that_java_reads(tmp_path: Path) -> None:
    async def run() -> None:
        offsets = LocalOffsets("1.2.3.4@DEFAULT", "g", tmp_path)
        assert await offsets.read(QUEUE) is None
        await offsets.commit(QUEUE, 7)
        await offsets.note(QUEUE, 3)  # a seek back
        await offsets.note(MessageQueue("t", "a", 1), 9)
        offsets.flush()
        again = LocalOffsets("1.2.3.4@DEFAULT", "g", tmp_path)
        assert await again.read(QUEUE) == 3
        file = tmp_path / ".rocketmq_offsets/1.2.3.4@DEFAULT/g/offsets.json"
        assert file.read_bytes().startswith(b'{"offsetTable":{{"topic":"t","brokerName":"a"')
        assert file.with_name("offsets.json.bak").exists()
        file.write_bytes(b"torn")
        assert await LocalOffsets("1.2.3.4@DEFAULT", "g", tmp_path).read(QUEUE) == 7

    simulated.run(run())


def test_a_subscription_selects_tags_or_a_sql_filter() -> None:
    tags = SelectedTopic("t", " a ||b|| ", 1)
    assert tags.data(9).code_set == sorted((hash_code("a"), hash_code("b")))
    assert (tags.data(9).sub_version, tags.data(9).sub_string) == (9, "a ||b||")
    assert SelectedTopic("t", "", 1).data(1).sub_string == "*"
    sql = SelectedTopic("t", Sql("a > 1"), 1).data(1)
    assert (sql.expression_type, sql.tags_set) == ("SQL92", [])
    message = consumed(0)
    assert not tags.takes(message)
    message.properties["TAGS"] = "b"
    assert tags.takes(message)


# Producers


def route(**queues: int) -> TopicRoute:
    rows = [QueueData(name, count, count, 6) for name, count in queues.items()]
    brokers = [BrokerData("c", name, {0: f"{name}:1"}) for name in queues if name != "slave"]
    brokers.append(BrokerData("c", "slave", {1: "slave:1"}))
    return TopicRoute("t", TopicRouteData(queue_datas=rows, broker_datas=brokers))


def test_queues_of_brokers_without_a_master_are_read_only() -> None:
    found = route(b=1, a=2, slave=1)
    assert [queue.broker_name for queue in found.write_queues] == ["a", "a", "b"]
    assert [queue.broker_name for queue in found.read_queues] == ["a", "a", "b", "slave"]


def test_a_retried_send_goes_to_another_broker() -> None:
    now = 0.0
    choice = QueueChoice(lambda: now, avoids_slow_brokers=False)
    both = route(a=4, b=4)
    assert {choice.next(both, "a").broker_name for _ in range(20)} == {"b"}
    assert {choice.next(route(a=4), "a").broker_name for _ in range(20)} == {"a"}
    assert len({choice.next(both) for _ in range(8)}) == 8
    with pytest.raises(NoRouteError, match="no queue accepts messages"):
        choice.next(route(slave=1))


def test_slow_brokers_are_avoided_for_a_while() -> None:
    now = 0.0
    choice = QueueChoice(lambda: now, avoids_slow_brokers=True)
    both = route(a=1, b=1)
    choice.took("a", 0.6)
    assert {choice.next(both).broker_name for _ in range(9)} == {"b"}
    choice.took("b", 4.0)
    assert {choice.next(both).broker_name for _ in range(9)} == {"a"}
    now = 2.0
    assert {choice.next(both).broker_name for _ in range(9)} == {"a"}
    now = 6.0
    assert {choice.next(both).broker_name for _ in range(9)} == {"a", "b"}


def test_a_sharding_key_has_javas_queue() -> None:
    queues = [MessageQueue("t", "a", number) for number in range(7)]
    assert by_sharding_key(queues, "polygenelubricants").queue_id == 2**31 % 7
    assert by_sharding_key(queues, "abc").queue_id == 96354 % 7


def test_messages_of_a_batch_have_the_unique_keys_of_its_result() -> None:
    messages = [
        Message(topic="t", body=b"0"),
        Message(topic="t", body=b"1", tags="red"),
        Message(topic="t", body=b"2", properties={UNIQ_KEY: "mine"}),
        Message(topic="t", body=b"3", waits_for_store=True),
    ]
    ((first, batch),) = Outgoings(KEYS, lambda: 0, None, 1000).groups(messages, 1000)
    assert first is messages[0]
    properties = [
        decode_properties(batch.body[part.properties_at :][: part.properties_length])
        for part in decode_batch(batch.body)
    ]
    assert [each[UNIQ_KEY] for each in properties] == list(batch.message_ids)
    assert [each.get("TAGS") for each in properties] == [None, "red", None, None]
    assert batch.message_ids[2] == "mine"
    assert list(batch.message_ids[1:3]) == [properties[1][UNIQ_KEY], "mine"]
    assert UniqueKey.parse(batch.message_ids[0]).ip == bytes((10, 0, 0, 1))


def test_results_of_a_batch_are_made_when_they_are_asked_for() -> None:
    first = SendResult(SendStatus.SEND_OK, "k0", "o0,o1,o2", QUEUE, 7)
    results = SendResults(first, ["k0", "k1", "k2"], ["o0", "o1", "o2"])
    assert [(each.message_id, each.offset_message_id) for each in results] == [
        ("k0", "o0"),
        ("k1", "o1"),
        ("k2", "o2"),
    ]
    assert [each.queue_offset for each in results[1:]] == [8, 9]
    assert results[-1] == results[2]
    assert results == list(results)
    assert results != list(results)[:2]
    assert repr(results).startswith("[SendResult(")
    with pytest.raises(IndexError):
        results[3]


def test_keys_of_batches_differ_also_if_others_are_made_in_between() -> None:
    keys = UniqueKeys("10.0.0.1:0", SystemClock())
    outgoings = Outgoings(keys, lambda: 0, None, 1000)
    seen: list[str] = []
    for _, batch in outgoings.groups([Message(topic="t", body=bytes(100))] * 6, 400):
        seen += batch.message_ids
        others = keys.encoded(b"", b"")
        seen += (next(others).decode() for _ in range(2**16 - 2))
    assert len(set(seen)) == len(seen)


def test_a_message_that_a_property_delays_is_not_batched() -> None:
    outgoings = Outgoings(KEYS, lambda: 0, None, 1000)
    late = Message(topic="t", body=b"late", properties={"DELAY": "2"})
    assert late.is_delayed
    groups = list(outgoings.groups([late, late], 1000))
    assert [(first is late, batch.is_batch) for first, batch in groups] == [(True, False)] * 2
    with pytest.raises(FormatError, match="a message is delayed"):
        outgoings.batch([late, late])


@pytest.mark.parametrize(
    "message",
    [
        Message(topic="t", body=b"first", priority=0),
        Message(topic="t", body=b"first", properties={"_SYS_MSG_PRIORITY_": "0"}),
    ],
)
def test_a_message_with_a_priority_is_not_batched(message: Message) -> None:
    outgoings = Outgoings(KEYS, lambda: 0, None, 1000)
    ((_, sent), (_, again)) = outgoings.groups([message, message], 1000)
    assert (sent.is_batch, again.is_batch) == (False, False)
    assert decode_properties(sent.properties.encode())["_SYS_MSG_PRIORITY_"] == "0"
    with pytest.raises(FormatError, match="a message has a priority"):
        outgoings.batch([message, message])


@pytest.mark.parametrize("priority", [-1, 2**31])
def test_an_invalid_priority_is_refused(priority: int) -> None:
    with pytest.raises(FormatError, match=f"priority {priority} is not between 0 and 2147483647"):
        Message(topic="t", body=b"", priority=priority).all_properties()


def test_a_received_message_has_its_priority() -> None:
    message = consumed(0)
    assert message.priority is None
    message.properties["_SYS_MSG_PRIORITY_"] = "7"
    assert message.priority == 7
    again = message_from_json(msgspec.json.encode(message_to_json(message)), "t")
    assert (again.priority, again.properties) == (7, {})


def test_messages_of_different_kinds_do_not_share_a_batch() -> None:
    outgoings = Outgoings(KEYS, lambda: 0, None, 1000)
    messages = [Message(topic="t", body=bytes(100)) for _ in range(5)]
    messages.insert(2, Message(topic="t", body=b"late", delay=5))
    groups = list(outgoings.groups(messages, 400))
    assert [messages.index(first) for first, _ in groups] == [0, 2, 0, 0]
    assert [len(outgoing.message_ids) for _, outgoing in groups] == [2, 1, 2, 1]
    assert [outgoing.is_batch for _, outgoing in groups] == [True, False, True, False]
    assert len({key for _, each in groups for key in each.message_ids}) == 6
    batch = outgoings.batch([messages[0], messages[1]])
    assert [part.body_length for part in decode_batch(batch.body)] == [100, 100]
    with pytest.raises(FormatError, match="a message is delayed"):
        outgoings.batch(messages)
    with pytest.raises(FormatError, match="exceeds the maximum of 1000"):
        outgoings.single(Message(topic="t", body=bytes(1001)))


@pytest.mark.parametrize(
    "message",
    [
        Message(topic="t", body=b"", delay=1, delay_level=2),
        Message(topic="t", body=b"", properties={"a": "b\x02c"}),
        Message(topic="t", body=b"", tags="\ud800"),
        Message(topic="", body=b""),
    ],
)
def test_invalid_messages_are_refused(message: Message) -> None:
    with pytest.raises(FormatError):
        Outgoings(KEYS, lambda: 0, None, 1000).single(message)


def test_messages_wait_for_room_in_their_order() -> None:
    async def run() -> None:
        room, order = FlowControl(2, 100), list[int]()

        async def send(number: int, size: int) -> None:
            await room.enter(size)
            try:
                order.append(number)
                await asyncio.sleep(0.01)
            finally:
                room.leave(size)

        tasks = [asyncio.create_task(send(number, 60)) for number in range(3)]
        tasks.append(asyncio.create_task(send(3, 1000)))
        await asyncio.sleep(0)
        tasks[1].cancel()
        await room.drained()
        assert order == [0, 2, 3]
        assert (room.count, room.bytes) == (0, 0)

    simulated.run(run())


def test_a_cancelled_sender_leaves_the_count_as_it_was() -> None:
    async def run() -> None:
        room, release = FlowControl(2, 100), asyncio.Event()

        async def hold(size: int) -> None:
            await room.enter(size)
            try:
                await release.wait()
            finally:
                room.leave(size)

        tasks = [asyncio.create_task(hold(size)) for size in (60, 60, 10, 10)]
        await asyncio.sleep(0)
        assert (room.count, room.bytes) == (1, 60)
        tasks[1].cancel()  # it waits, and holds up those after it
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (room.count, room.bytes) == (2, 70)
        tasks[0].cancel()  # its room goes to the last one, which is cancelled in the same moment
        tasks[3].cancel()
        release.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await room.drained()
        assert (room.count, room.bytes) == (0, 0)

    simulated.run(run())


def test_a_consumed_message_is_sent_anew_without_what_rocketmq_added() -> None:
    message = consumed(0)
    message.properties.update(
        {
            "RETRY_TOPIC": "other",
            "RECONSUME_TIME": "3",
            "TIMER_DELAY_MS": "5000",
            "TRAN_MSG": "true",
            "mine": "kept",
        }
    )
    again = message_from_json(msgspec.json.encode(message_to_json(message)), "t")
    assert again.properties == {"mine": "kept"}
    assert not again.is_delayed


@pytest.mark.parametrize("line", [b"", b"[]", b'{"body":1}', b'{"bodyBase64":"?"}', b"\xff"])
def test_invalid_lines_of_json_are_refused(line: bytes) -> None:
    with pytest.raises(FormatError, match="not a message"):
        message_from_json(line, "t")


def test_a_timer_continues_after_a_failure() -> None:
    async def run() -> None:
        calls: list[int] = []

        async def call() -> None:
            calls.append(len(calls))
            if len(calls) == 1:
                raise RuntimeError("once")

        timer = Timer("test", call, first=0.0, every=60.0)
        timer.start()
        await until(lambda: len(calls) == 1)
        timer.wake()
        await until(lambda: len(calls) == 2)
        await timer.stop()
        assert calls == [0, 1]

    simulated.run(run())
