"""SendMessage checks messages, and stores them as RocketMQ's proxy does."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

import pytest

from mqlake.formats.sys_flag import COMPRESSED
from mqlake.grpc.messages import Code, Encoding, Message, MessageType, Timestamp
from mqlake.testing.advanced_clock import AdvancedClock
from tests import simulated
from tests.broker.running import next_port
from tests.proxy.sending.messages import ID, at, message, send
from tests.proxy.serving import Calls, named, serving


def test_a_message_is_stored_with_what_its_client_said(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", queues=1)
            sent = message(
                body=b"body",
                tag="tag",
                keys=["k1", "k2"],
                born_timestamp=at(1_700_000_000_123),
                born_host="my-host",
                trace_context="trace",
                user_properties={"colour": "blue", "größe": "ü€"},
            )
            found = await calls.ask("SendMessage", send(sent), peer="10.0.0.7:77")
            assert found.status.code == Code.OK, found.status.message
            (entry,) = found.entries
            assert (entry.status.code, entry.message_id, entry.offset) == (Code.OK, ID, 0)
            (record,) = calls.broker.records("T")
            assert record.body == b"body"
            assert record.born_host == "10.0.0.7:77"
            assert record.born_timestamp == 1_700_000_000_123
            properties = record.properties
            assert properties["TAGS"] == "tag"
            assert properties["KEYS"] == "k1 k2"
            assert properties["UNIQ_KEY"] == ID
            assert properties["PGROUP"] == "T"
            assert properties["__BORNHOST"] == "my-host"
            assert properties["BORN_TIMESTAMP"] == "1700000000123"
            assert properties["TRACE_CONTEXT"] == "trace"
            assert properties["colour"] == "blue"
            assert properties["größe"] == "ü€"

    simulated.run(run())


def test_normal_messages_go_to_one_queue_after_the_other(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", queues=3)
            for _ in range(6):
                await calls.ask("SendMessage", send(message()))
            assert [len(calls.broker.records("T", queue)) for queue in range(3)] == [2, 2, 2]

    simulated.run(run())


def test_messages_of_a_group_go_to_the_queue_that_rocketmqs_proxy_chooses(
    tmp_path: Path,
) -> None:
    """The queues are those that RocketMQ 5.5.0 chose for the same groups."""
    queues = {0: (0, 6, 11), 1: (3, 4), 2: (1, 2, 8), 3: (5, 7, 9, 10)}

    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("F", "FIFO", queues=4)
            for number in range(12):
                sent = message(
                    "F",
                    f"{number}".encode(),
                    message_type=MessageType.FIFO,
                    message_group=f"group {number}",
                )
                found = await calls.ask("SendMessage", send(sent))
                assert found.status.code == Code.OK, found.status.message
            for queue, numbers in queues.items():
                stored = [int(record.body) for record in calls.broker.records("F", queue)]
                assert sorted(stored) == sorted(numbers), queue

    simulated.run(run())


def test_a_batch_is_stored_together(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", queues=1)
            batch = [message(body=b"%d" % n, message_id=f"{ID}{n}") for n in range(3)]
            found = await calls.ask("SendMessage", send(*batch))
            assert found.status.code == Code.OK, found.status.message
            assert [(entry.message_id, entry.offset) for entry in found.entries] == [
                (f"{ID}{n}", n) for n in range(3)
            ]
            records = calls.broker.records("T")
            assert [record.body for record in records] == [b"0", b"1", b"2"]
            assert [record.properties["UNIQ_KEY"] for record in records] == [
                f"{ID}{n}" for n in range(3)
            ]

    simulated.run(run())


def test_a_compressed_body_is_stored_as_it_is(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", queues=1)
            body = zlib.compress(b"x" * 10_000)
            await calls.ask("SendMessage", send(message(body=body, body_encoding=Encoding.GZIP)))
            (record,) = calls.broker.records("T")
            assert record.body == body
            assert record.sys_flag & COMPRESSED

    simulated.run(run())


def test_a_message_with_a_delivery_time_waits_for_it(tmp_path: Path) -> None:
    async def run() -> None:
        clock = AdvancedClock()
        async with serving(tmp_path, clock=clock, timerPrecisionMs=100) as calls:
            calls.topic("D", "DELAY", queues=1)
            later = at(clock.milliseconds() + 60_000)
            sent = message("D", message_type=MessageType.DELAY, delivery_timestamp=later)
            found = await calls.ask("SendMessage", send(sent))
            assert found.status.code == Code.OK, found.status.message
            assert found.entries[0].recall_handle
            assert not calls.broker.records("D")
            past = at(clock.milliseconds() - 60_000)
            sent = message("D", b"now", message_type=MessageType.DELAY, delivery_timestamp=past)
            assert (await calls.ask("SendMessage", send(sent))).status.code == Code.OK
            assert [record.body for record in calls.broker.records("D")] == [b"now"]

    simulated.run(run())


def test_a_message_with_a_priority_goes_to_the_queue_of_the_priority(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("P", "PRIORITY", queues=4)
            sent = message("P", message_type=MessageType.PRIORITY, priority=2)
            assert (await calls.ask("SendMessage", send(sent))).status.code == Code.OK
            assert len(calls.broker.records("P", 2)) == 1

    simulated.run(run())


def _user(**properties: str) -> Message:
    return message(user_properties=properties)


REFUSED: list[tuple[str, tuple[Message, ...], Code]] = [
    ("nothing", (), Code.MESSAGE_CORRUPTED),
    ("of two topics", (message(), message("U")), Code.MESSAGE_CORRUPTED),
    ("wrong topic", (message("a b"),), Code.ILLEGAL_TOPIC),
    ("blank topic", (message(""),), Code.ILLEGAL_TOPIC),
    ("system topic", (message("SCHEDULE_TOPIC_XXXX"),), Code.ILLEGAL_TOPIC),
    (
        "unknown topic",
        (message("missing"),),
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
    ),
    ("without id", (message(message_id=""),), Code.ILLEGAL_MESSAGE_ID),
    ("blank id", (message(message_id="  "),), Code.ILLEGAL_MESSAGE_ID),
    ("control in the id", (message(message_id="a\x01b"),), Code.ILLEGAL_MESSAGE_ID),
    ("empty", (message(body=b""),), Code.MESSAGE_BODY_EMPTY),
    ("too long", (message(body=bytes((4 << 20) + 1)),), Code.MESSAGE_BODY_TOO_LARGE),
    ("second is empty", (message(), message(body=b"")), Code.MESSAGE_BODY_EMPTY),
    ("blank tag", (message(tag=" "),), Code.ILLEGAL_MESSAGE_TAG),
    ("tag with bar", (message(tag="a|b"),), Code.ILLEGAL_MESSAGE_TAG),
    ("tag with control", (message(tag="a\x02b"),), Code.ILLEGAL_MESSAGE_TAG),
    ("blank key", (message(keys=["a", ""]),), Code.ILLEGAL_MESSAGE_KEY),
    ("key with control", (message(keys=["a\x01"]),), Code.ILLEGAL_MESSAGE_KEY),
    ("reserved property", (_user(UNIQ_KEY="x"),), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
    ("control in a key", (_user(**{"a\x01": "x"}),), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
    ("control in a value", (_user(a="\x02"),), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
    (
        "129 properties",
        (_user(**{f"n{number}": "x" for number in range(129)}),),
        Code.MESSAGE_PROPERTIES_TOO_LARGE,
    ),
    ("above 16 KiB", (_user(n="x" * (16 << 10)),), Code.MESSAGE_PROPERTIES_TOO_LARGE),
    ("long tag", (message(tag="x" * ((16 << 10) + 1)),), Code.MESSAGE_PROPERTIES_TOO_LARGE),
    ("blank group", (message("F", message_group=" "),), Code.ILLEGAL_MESSAGE_GROUP),
    ("group of 64", (message("F", message_group="x" * 64),), Code.ILLEGAL_MESSAGE_GROUP),
    (
        "group of 64 bytes",
        (message("F", message_group="é" * 32),),
        Code.ILLEGAL_MESSAGE_GROUP,
    ),
    (
        "fifo to a normal topic",
        (message(message_group="g"),),
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
    ),
    (
        "sharding key",
        (_user(__SHARDINGKEY="g"),),
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
    ),
    ("normal to a fifo topic", (message("F"),), Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE),
    (
        "delay to a normal topic",
        (message(delivery_timestamp=at(1)),),
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
    ),
    (
        "too late",
        (message("D", delivery_timestamp=at(1 << 45)),),
        Code.ILLEGAL_DELIVERY_TIME,
    ),
    (
        "before 1970",
        (message("D", delivery_timestamp=at(-5000)),),
        Code.ILLEGAL_DELIVERY_TIME,
    ),
    (
        "transaction to a normal topic",
        (message(message_type=MessageType.TRANSACTION),),
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
    ),
    ("lite", (message(lite_topic="l"),), Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE),
    ("priority", (message(priority=1),), Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE),
    ("negative priority", (message(priority=-1),), Code.INTERNAL_SERVER_ERROR),
    ("not writable", (message("R"),), Code.FORBIDDEN),
]


async def _with_topics(calls: Calls) -> None:
    calls.topic("T")
    calls.topic("F", "FIFO")
    calls.topic("D", "DELAY")
    calls.topic("R", queues=0)


def test_what_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            await _with_topics(calls)
            for what, messages, code in REFUSED:
                found = await calls.ask("SendMessage", send(*messages))
                assert found.status.code == code, f"{what}: {found.status}"
                assert not found.entries

    simulated.run(run())


def test_what_is_just_allowed_is_sent(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, mappedFileSizeCommitLog=16 << 20) as calls:
            await _with_topics(calls)
            for sent in (
                message(body=bytes(4 << 20)),
                _user(**{f"n{number}": "x" for number in range(128)}),
                _user(n="x" * ((16 << 10) - 1)),
                _user(**{"": "x"}),
                _user(a=""),
                message(message_type=MessageType.MESSAGE_TYPE_UNSPECIFIED),
                message(message_type=MessageType.FIFO),
                message("F", message_group="x" * 63),
            ):
                found = await calls.ask("SendMessage", send(sent))
                assert found.status.code == Code.OK, found.status.message

    simulated.run(run())


def test_a_mixed_topic_accepts_four_types(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("M", "MIXED")
            for system in (
                {},
                {"message_group": "g"},
                {"delivery_timestamp": at(1)},
                {"message_type": MessageType.TRANSACTION},
            ):
                found = await calls.ask("SendMessage", send(message("M", **system)))
                assert found.status.code == Code.OK, found.status.message

    simulated.run(run())


def test_a_namespace_is_part_of_the_topics_name(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("shop%T", queues=1)
            sent = message()
            sent.topic.CopyFrom(named("T", "shop"))
            assert (await calls.ask("SendMessage", send(sent))).status.code == Code.OK
            assert len(calls.broker.records("shop%T")) == 1

    simulated.run(run())


def test_a_call_sends_a_limited_number_of_messages(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", queues=1)
            batch = [message(body=b"%d" % number) for number in range(1025)]
            found = await calls.ask("SendMessage", send(*batch))
            assert found.status.code == Code.MESSAGE_BODY_TOO_LARGE
            found = await calls.ask("SendMessage", send(*batch[:1024]))
            assert found.status.code == Code.OK, found.status.message
            assert len(calls.broker.records("T")) == 1024

    simulated.run(run())


def test_a_send_that_waits_for_the_disk_is_answered_once_it_is_durable(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, flushDiskType="SYNC_FLUSH") as calls:
            calls.topic("T", queues=1)
            sends = [
                calls.ask("SendMessage", send(message(message_id=f"{ID}{n}"))) for n in range(5)
            ]
            for found in await asyncio.gather(*sends):
                assert found.status.code == Code.OK, found.status.message
            assert len(calls.broker.records("T")) == 5

    simulated.run(run())


def test_what_a_broker_says_of_durability_is_a_code_of_the_message(tmp_path: Path) -> None:
    async def run() -> None:
        settings = {"brokerRole": "SYNC_MASTER", "haListenPort": next_port()}
        async with serving(tmp_path, **settings) as calls:
            calls.topic("T", queues=1)
            found = await calls.ask("SendMessage", send(message()))
            assert found.status.code == Code.HA_NOT_AVAILABLE
            (entry,) = found.entries
            assert (entry.status.code, entry.message_id) == (Code.HA_NOT_AVAILABLE, ID)

    simulated.run(run())


TOGETHER = [
    ("normal and half", message(), message(message_type=MessageType.TRANSACTION)),
    ("normal and delayed", message(), message(delivery_timestamp=at(1))),
    ("identity and gzip", message(), message(body_encoding=Encoding.GZIP)),
    ("gzip and identity", message(body_encoding=Encoding.GZIP), message()),
    ("normal and with a priority", message(), message(priority=1)),
    ("two delayed", *[message("D", delivery_timestamp=at(1))] * 2),
    ("two halves", *[message("X", message_type=MessageType.TRANSACTION)] * 2),
    ("of two groups", message("F", message_group="a"), message("F", message_group="b")),
]


def test_messages_that_differ_are_not_sent_together(tmp_path: Path) -> None:
    """A broker takes the flags and the queue of a batch from its first message."""

    async def run() -> None:
        async with serving(tmp_path) as calls:
            await _with_topics(calls)
            calls.topic("X", "TRANSACTION")
            for what, *messages in TOGETHER:
                found = await calls.ask("SendMessage", send(*messages))
                assert found.status.code == Code.MESSAGE_CORRUPTED, what
            assert not any(calls.broker.records("T", queue) for queue in range(4))

    simulated.run(run())


def test_a_batch_of_a_message_group_goes_to_the_queue_of_the_group(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("F", "FIFO", queues=4)
            batch = [message("F", b"%d" % n, message_group="group 1") for n in range(2)]
            assert (await calls.ask("SendMessage", send(*batch))).status.code == Code.OK
            single = message("F", b"2", message_group="group 1")
            assert (await calls.ask("SendMessage", send(single))).status.code == Code.OK
            bodies = [record.body for record in calls.broker.records("F", 2)]
            assert bodies == [b"0", b"1", b"2"]

    simulated.run(run())


def test_long_names_and_times_are_refused_without_a_trace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", queues=1)
            for sent, code in (
                (message(trace_context="x" * 70_000), Code.BAD_REQUEST),
                (message(born_host="x" * 256), Code.BAD_REQUEST),
                (message(message_id="x" * 256), Code.ILLEGAL_MESSAGE_ID),
                (message(keys=["k"] * (16 << 10)), Code.MESSAGE_PROPERTIES_TOO_LARGE),
                (message(born_timestamp=Timestamp(seconds=1 << 60)), Code.OK),
                (message(born_timestamp=Timestamp(seconds=-5)), Code.OK),
            ):
                for messages in ((sent,), (sent, sent)):
                    found = await calls.ask("SendMessage", send(*messages))
                    assert found.status.code == code, found.status.message

    simulated.run(run())
    assert not caplog.messages


def test_the_bodies_of_one_call_have_a_limit_together(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", queues=1)
            found = await calls.ask("SendMessage", send(*[message(body=bytes(3 << 20))] * 2))
            assert found.status.code == Code.MESSAGE_BODY_TOO_LARGE

    simulated.run(run())
