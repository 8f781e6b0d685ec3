"""What a broker accepted it can deliver again: popped, given back, dead, committed, in time."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.message_id import decode_message_id
from mqlake.formats.properties import MAX_LENGTH, decode_properties
from mqlake.formats.record import Record
from mqlake.formats.sys_flag import TRANSACTION_COMMIT
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.protocol.headers.transactions import EndTransactionHeader
from mqlake.store.append.message import Message
from tests import simulated
from tests.broker.pop.popping import GROUP, RETRY, TOPIC, Popped, header, pop
from tests.broker.putting_again import FAST, HALF, KEY, give_back
from tests.broker.running import Running, running, to
from tests.broker.send import random_sends as runs
from tests.broker.send.streams import ask, warm
from tests.protocol.messages import SEND_FIELDS
from tests.until import until

ASIDE = "rmq_sys_UNDELIVERABLE"


def user(size: int, filler: str = "x") -> str:
    """Return a property of so many bytes."""
    return "user\x01" + (filler * size)[: size - 6] + "\x02"


def illegal(answer: Command) -> bool:
    """Say whether a message was too long, and the answer says how long it may be."""
    is_refused = answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert is_refused or answer.code == ResponseCode.SUCCESS, (answer.code, answer.remark)
    assert not is_refused or "the maximum" in str(answer.remark)
    return is_refused


async def longest(send: Callable[[int], Awaitable[Command]]) -> int:
    """Return the largest size that is accepted, by halving."""
    low, high = 20_000, MAX_LENGTH
    assert not illegal(await send(low))
    assert illegal(await send(high))
    while high - low > 1:
        middle = (low + high) // 2
        is_refused = illegal(await send(middle))
        low, high = (low, middle) if is_refused else (middle, high)
    return low


async def wait_for(found: Callable[[], list[Record]], count: int = 1) -> list[Record]:
    """Return what is found once it is so much."""
    await until(lambda: len(found()) >= count)
    return found()


def send_to(broker: Running, extra: str, *, flags: int = 0) -> Callable[[int], Awaitable[Command]]:
    def send(size: int) -> Awaitable[Command]:
        now, data = broker.state.store.core.clock.milliseconds(), extra + user(size)
        return broker.send(to(TOPIC, properties=data, sys_flag=flags, born_timestamp=now), b"body")

    return send


def same(record: Record, size: int) -> None:
    assert record.body == b"body"
    assert record.properties["user"] == decode_properties(user(size).encode())["user"]


@pytest.mark.parametrize("extra", [KEY, KEY + "TIMER_DELAY_MS\x01200\x02", KEY + "DELAY\x011\x02"])
def test_the_longest_message_is_popped_given_back_and_dead(tmp_path: Path, extra: str) -> None:
    async def test() -> None:
        sent = 0

        async def send(size: int) -> Command:
            nonlocal sent
            answer = await send_to(broker, extra)(size)
            sent += answer.code == ResponseCode.SUCCESS
            return answer

        async with running(tmp_path, **FAST) as broker:
            size = await longest(send)
            await wait_for(lambda: broker.records(TOPIC), sent)
            assert (await send(size)).code == ResponseCode.SUCCESS
            found = (await wait_for(lambda: broker.records(TOPIC), sent))[-1]
            same(found, size)
            assert illegal(await send_to(broker, extra)(size + 1))

            # Given back twice, then dead.
            for times in range(2):
                assert (await give_back(broker, found)).code == ResponseCode.SUCCESS
                found = (await wait_for(lambda: broker.records("%RETRY%group"), times + 1))[-1]
                same(found, size)
            assert (await give_back(broker, found, -1)).code == ResponseCode.SUCCESS
            same(broker.records("%DLQ%group")[0], size)

            # Sent to the retry topic by a client, with all that it adds and the broker's own.
            text = "".join(f"{name}\x01{value}\x02" for name, value in found.properties.items())
            text += (
                f"RECONSUME_TIME\x013\x02MAX_RECONSUME_TIMES\x0116\x02MIN_OFFSET\x01{10**18}\x02"
            )
            text += f"MAX_OFFSET\x01{10**18}\x02CONSUME_START_TIME\x01{10**12}\x02"
            again = to("%RETRY%group", properties=text, reconsume_times=3)
            answer = await broker.send(again, b"body")
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            same((await wait_for(lambda: broker.records("%RETRY%group"), 3))[-1], size)
            assert broker.state.store.core.redelivery.set_aside == 0

    simulated.run(test())


def test_the_longest_message_is_popped_again_and_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            broker.state.topics.put(Topic(TOPIC, read_queue_nums=1, write_queue_nums=1))
            size = await longest(send_to(broker, KEY))
            broker.state.store.core.tick()
            while await pop(broker):
                pass
            assert (await send_to(broker, KEY)(size)).code == ResponseCode.SUCCESS
            broker.state.store.core.tick()
            for _ in range(4):
                popped: list[Popped] = []
                while not popped:
                    popped = await pop(broker, poll_time=5000, invisible_time=100)
                (found,) = popped
                same(found.record, size)
            assert broker.state.store.core.redelivery.set_aside == 0

    simulated.run(test())


def checked(broker: Running, size: int) -> list[Record]:
    """Return the half messages of a size whose producer was asked."""
    return [
        half
        for half in broker.records("RMQ_SYS_TRANS_HALF_TOPIC")
        if "TRANSACTION_CHECK_TIMES" in half.properties
        and half.properties["user"] == decode_properties(user(size).encode())["user"]
    ]


@pytest.mark.parametrize("extra", ["", "TIMER_DELAY_MS\x01200\x02"])
def test_the_longest_half_is_checked_and_committed(tmp_path: Path, extra: str) -> None:
    async def test() -> None:
        async with running(tmp_path, **FAST) as broker:
            pairs = KEY + HALF + extra
            size = await longest(send_to(broker, pairs, flags=4))
            answer = await send_to(broker, pairs, flags=4)(size)
            found = answer.header(SendMessageResponseHeader)
            _, offset = decode_message_id(found.msg_id)
            await wait_for(lambda: checked(broker, size))
            end = EndTransactionHeader("producers", found.queue_offset, offset, TRANSACTION_COMMIT)
            assert (await broker.ask(RequestCode.END_TRANSACTION, end)).code == 0
            record = (await wait_for(lambda: broker.records(TOPIC)))[0]
            same(record, size)
            assert (await give_back(broker, record)).code == ResponseCode.SUCCESS
            same((await wait_for(lambda: broker.records("%RETRY%group")))[0], size)
            assert broker.state.store.core.redelivery.set_aside == 0

    simulated.run(test())


async def popped_all(broker: Running, bodies: set[bytes]) -> None:
    """Pop, for a short time, until each of these messages came."""
    found: set[bytes] = set()
    while found != bodies:
        popped = await pop(broker, poll_time=5000, invisible_time=100)
        found |= {each.record.body for each in popped}
        assert found <= bodies


def test_runs_and_batches_have_the_same_limit(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, mappedFileSizeCommitLog=4 << 20) as broker:
            await warm(broker)
            single = await longest(
                lambda size: broker.send(to(runs.TOPIC, properties=KEY + user(size)), b"body")
            )
            for more, code in ((-1, 0), (0, 0), (1, ResponseCode.MESSAGE_ILLEGAL)):
                sizes = [100, 100, 100, 100, single + more, 100, 100]
                frames = [
                    runs.send(SEND_FIELDS | {"i": KEY + user(size)}, b"body", opaque)
                    for opaque, size in enumerate(sizes)
                ]
                answers = await ask(broker, b"".join(frames), len(sizes))
                codes = [answers[opaque].code for opaque in range(len(sizes))]
                assert codes == [0, 0, 0, 0, code, 0, 0]

            def parts(size: int) -> bytes:
                return encode_batch(
                    [(0, b"body", b"A\x01b\x02"), (0, b"body", user(size).encode())]
                )

            def batch(size: int) -> Awaitable[Command]:
                asked = to(runs.TOPIC, batch=True, properties=KEY)
                return broker.ask(RequestCode.SEND_BATCH_MESSAGE, asked, parts(size))

            of_batch = await longest(batch)
            for more, code in ((-1, 0), (0, 0), (1, ResponseCode.MESSAGE_ILLEGAL)):
                sizes = [100, 100, of_batch + more, 100]
                frames = [
                    runs.batch(runs.BATCH_FIELDS, parts(size), opaque)
                    for opaque, size in enumerate(sizes)
                ]
                answers = await ask(broker, b"".join(frames), len(sizes))
                assert [answers[opaque].code for opaque in range(len(sizes))] == [0, 0, code, 0]

    simulated.run(asyncio.wait_for(test(), 300))


def test_malformed_text_of_a_batch_does_not_grow(tmp_path: Path) -> None:
    """Each byte that is no UTF-8 would become three."""

    async def test() -> None:
        async with running(tmp_path) as broker:
            data = b"user\x01" + b"\xff" * 15_000 + b"\x02"
            asked = to(TOPIC, batch=True, properties=KEY)
            body = encode_batch([(0, b"odd", data), (0, b"good", b"")])
            answer = await broker.ask(RequestCode.SEND_BATCH_MESSAGE, asked, body)
            assert answer.code == ResponseCode.SUCCESS
            broker.state.store.core.tick()
            for _ in range(3):
                await popped_all(broker, {b"odd", b"good"})
            assert {len(record.properties.get("user", "")) for record in broker.records(RETRY)} == {
                0,
                15_000,
            }

    simulated.run(test())


def test_a_body_as_long_as_a_file_leaves_room(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, mappedFileSizeCommitLog=1 << 16, **FAST) as broker:
            low, high = 10_000, 1 << 16
            while high - low > 1:
                middle = (low + high) // 2
                answer = await broker.send(to(TOPIC, properties=KEY), b"x" * middle)
                low, high = (low, middle) if illegal(answer) else (middle, high)
            assert (await broker.send(to(TOPIC, properties=KEY), b"y" * low)).code == 0
            record = broker.records(TOPIC)[-1]
            assert record.body == b"y" * low
            assert (await give_back(broker, record)).code == ResponseCode.SUCCESS
            (again,) = await wait_for(lambda: broker.records("%RETRY%group"))
            assert again.body == record.body

    simulated.run(test())


def test_messages_of_a_larger_limit_come_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            assert (await broker.send(to(TOPIC, properties=KEY), b"x" * 5000)).code == 0
        async with running(tmp_path, maxMessageSize=100, **FAST) as broker:
            (record,) = broker.records(TOPIC)
            assert (await give_back(broker, record)).code == ResponseCode.SUCCESS
            (again,) = await wait_for(lambda: broker.records("%RETRY%group"))
            assert again.body == record.body
            asked = to("%RETRY%group", properties=KEY, reconsume_times=1)
            assert (await broker.send(asked, b"x" * 5000)).code == ResponseCode.SUCCESS
            assert illegal(await broker.send(to(TOPIC, properties=KEY), b"x" * 5000))
            for _ in range(3):
                await popped_all(broker, {b"x" * 5000})

    simulated.run(test())


def full(optional: str = "") -> bytes:
    return (optional + user(MAX_LENGTH - len(optional))).encode()


@pytest.mark.parametrize(
    "optional",
    ["", "CLUSTER\x01DefaultCluster\x02TRACE_ON\x01true\x02MSG_REGION\x01DefaultRegion\x02"],
)
def test_full_messages_of_older_stores_come_again(tmp_path: Path, optional: str) -> None:
    async def test() -> None:
        async with running(tmp_path, **FAST, enabledAppendPropCRC=False) as broker:
            broker.state.topics.put(Topic(TOPIC, read_queue_nums=1, write_queue_nums=1))
            for body, data in ((b"body", full(optional)), (b"good", b"")):
                message = Message(TOPIC, body, encoded_properties=data)
                assert broker.state.store.core.puts.put(message).is_ok
        async with running(tmp_path, **FAST) as broker:
            core = broker.state.store.core
            for _ in range(3):
                await popped_all(broker, {b"body", b"good"})
            record = broker.records(TOPIC)[0]
            for level in (1, -1):
                assert (await give_back(broker, record, level)).code == ResponseCode.SUCCESS
            same(broker.records("%DLQ%group")[0], MAX_LENGTH - len(optional))
            again = await wait_for(lambda: broker.records("%RETRY%group"))
            same(again[0], MAX_LENGTH - len(optional))
            assert core.redelivery.set_aside == 0

    simulated.run(test())


def test_what_can_never_be_put_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A group and a topic of older stores: the name of their retry topic is too long."""
    topic, group = "t" * 200, "g" * 120

    async def test() -> None:
        async with running(tmp_path, popCkStayBufferTime=100) as broker:
            for name in (topic, TOPIC):
                broker.state.topics.put(Topic(name, read_queue_nums=1, write_queue_nums=1))
            for name in (group, GROUP):
                broker.state.groups.put(SubscriptionGroup(name))
            core = broker.state.store.core
            for name, body in ((topic, b"poison"), (TOPIC, b"good")):
                assert core.puts.put(Message(name, body)).is_ok
            point = {"so": 0, "pt": 1, "it": 1, "n": 1, "q": 0, "d": [0]}
            revive = "rmq_sys_REVIVE_LOG_DefaultCluster"
            for names in ({"t": topic, "c": group}, {"t": TOPIC, "c": GROUP}):
                body = json.dumps(point | names).encode()
                assert core.puts.put(Message(revive, body, tags="ck")).is_ok
            (good,) = await wait_for(lambda: broker.records(RETRY))
            assert good.body == b"good"
            (aside,) = broker.records(ASIDE)
            assert (aside.body, core.redelivery.set_aside) == (b"poison", 1)
            await asyncio.sleep(1.5)
            assert core.redelivery.set_aside == 1

            answer = await broker.ask(
                RequestCode.POP_MESSAGE, header(topic=topic, consumer_group=group)
            )
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert "328 bytes; the maximum is 255" in str(answer.remark)

    simulated.run(test())
    assert caplog.text.count("is set aside") == 1


def test_retry_topics_of_stores_without_long_topics(tmp_path: Path) -> None:
    async def test() -> None:
        settings = {"autoMessageVersionOnTopicLen": False}
        async with running(tmp_path, **settings) as broker:
            assert (await broker.send(to(TOPIC))).code == 0
            asked = header(consumer_group="g" * 120)
            answer = await broker.ask(RequestCode.POP_MESSAGE, asked)
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert "the maximum is 127" in str(answer.remark)

    simulated.run(test())


@pytest.mark.parametrize("time", [-1, 3 * 24 * 60 * 60 * 1000 + 1])
def test_times_that_no_check_point_can_have(tmp_path: Path, time: int) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            assert (await broker.send(to(TOPIC))).code == 0
            answer = await broker.ask(RequestCode.POP_MESSAGE, header(invisible_time=time))
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert "timerMaxDelaySec" in str(answer.remark)

    simulated.run(test())


def test_a_full_disk_is_not_asked_in_a_hot_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            for number in range(50):
                asked = to(TOPIC, queue_id=0, properties=KEY)
                assert (await broker.send(asked, b"%d" % number)).code == 0
            broker.state.store.core.tick()
            appender = broker.state.store.core._appender  # pyright: ignore[reportPrivateUsage]
            # Before the first pop: what comes again would be popped with the others.
            appender.set_not_writable("the disk is full")
            for _ in range(50):
                assert len(await pop(broker, max_msg_nums=1, invisible_time=200)) == 1
            caplog.set_level(logging.WARNING)
            caplog.clear()
            await asyncio.sleep(2.5)
            assert 1 <= len(caplog.records) <= 4
            assert broker.state.store.core.redelivery.set_aside == 0
            appender.set_not_writable(None)
            await wait_for(lambda: broker.records(RETRY), 50)

    simulated.run(test())


TRUSTED = [
    "rmq_sys_wheel_timer",
    "rmq_sys_REVIVE_LOG_DefaultCluster",
    "rmq_sys_REVIVE_LOG_other",
    "rmq_sys_SYNC_BROKER_MEMBER_broker-a",
    ASIDE,
    SCHEDULE_TOPIC,
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "OFFSET_MOVED_EVENT",
    "SELF_TEST_TOPIC",
]


def test_clients_do_not_write_what_the_broker_trusts(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            for name in TRUSTED:
                plain = to(name, properties=KEY, default_topic="BenchmarkTest")
                batch = to(name, properties=KEY, batch=True)
                half = to(name, properties=KEY + HALF, sys_flag=4)
                timed = to(name, properties=KEY + "TIMER_DELAY_MS\x015\x02")
                body = encode_batch([(0, b"body", b"A\x01b\x02")])
                answers = [
                    await broker.send(plain),
                    await broker.send(half),
                    await broker.send(timed),
                    await broker.ask(RequestCode.SEND_BATCH_MESSAGE, batch, body),
                    await broker.ask(RequestCode.SEND_REPLY_MESSAGE_V2, plain, b"body"),
                ]
                frames = [
                    runs.send(SEND_FIELDS | {"i": KEY, "b": name}, b"body", opaque)
                    for opaque in range(9)
                ]
                answers += (await ask(broker, b"".join(frames), 9)).values()
                assert {answer.code for answer in answers} == {ResponseCode.NO_PERMISSION}, name
            assert set(broker.state.store.topics()) == {runs.TOPIC}
            # Traces of clients on another access channel; upstream takes them, too.
            answer = await broker.send(to("rmq_sys_TRACE_DATA_region", properties=KEY))
            assert answer.code == ResponseCode.SUCCESS

    asyncio.run(asyncio.wait_for(test(), 280))
