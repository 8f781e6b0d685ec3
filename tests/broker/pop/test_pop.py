"""Messages are handed out, acknowledged, and come again if they are not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.filter.subscriptions import Choice
from mqlake.broker.pop.check_points import REVIVE_GROUP, Key
from mqlake.broker.pop.reading import PopRead
from mqlake.broker.pop.revive_topic import ReviveTopic
from mqlake.protocol.bodies.pop import BatchAck, BatchAcks
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import TopicNameHeader
from mqlake.protocol.headers.pop import ChangeInvisibleTimeAnswerHeader, PopAnswerHeader
from mqlake.store.append.message import Message
from mqlake.testing.advanced_clock import AdvancedClock
from tests import simulated
from tests.broker.pop.popping import (
    GROUP,
    LONG,
    RETRY,
    TOPIC,
    Popped,
    acknowledge,
    bodies,
    change,
    header,
    pop,
    run,
    send,
    until_waiting,
)
from tests.broker.running import PATIENCE, Running, running, to

OUT = 60_000
"""Milliseconds that a popped message is out; tests put the clock forward by them."""


def offset(broker: Running, queue_id: int = 0, topic: str = TOPIC) -> int | None:
    """Return where the group stands, once the broker has looked."""
    broker.state.store.core.durability.sync_log()
    found = [s.start for s in broker.runtime.repeating if s.name == "PopConsumption._look"]
    found[0]()
    return broker.state.store.core.config.consumer_offsets.query(GROUP, topic, queue_id)


async def until(broker: Running, count: int, **fields: object) -> list[Popped]:
    """Pop until there were so many messages."""
    found: list[Popped] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            found += await pop(broker, poll_time=2000, **fields)
    return found


def test_the_offset_follows_the_acknowledgements(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b", "c", "d")
            first, second = await pop(broker, max_msg_nums=2), await pop(broker)
            assert [each.body for each in first + second] == ["a", "b", "c", "d"]
            assert await pop(broker) == []
            await acknowledge(broker, *second)
            assert offset(broker) == 0
            await acknowledge(broker, first[1])
            assert offset(broker) == 0
            await acknowledge(broker, first[0])
            assert offset(broker) == 4
            assert broker.records("rmq_sys_wheel_timer") == []

    run(test())


def test_a_receipt_may_have_words_after_the_eighth(tmp_path: Path) -> None:
    """RocketMQ's proxy appends the message's physical offset and sends the whole handle back."""

    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock) as broker:
            await send(broker, "a", "b")
            first, second = [
                each._replace(receipt=f"{each.receipt} 4711") for each in await pop(broker)
            ]
            await acknowledge(broker, first)
            answer = await change(broker, second, OUT)
            assert answer.code == ResponseCode.SUCCESS
            clock.advance(OUT / 1000)
            (again,) = await until(broker, 1)
            assert again.body == "b"

    run(test())


def test_all_queues_or_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            for queue_id in range(4):
                await send(broker, f"{queue_id}a", f"{queue_id}b", queue_id=queue_id)
            assert bodies(await pop(broker, queue_id=2)) == ["2a", "2b"]
            found = await pop(broker)
            assert bodies(found) == ["0a", "0b", "1a", "1b", "3a", "3b"]
            await acknowledge(broker, *found)
            assert [offset(broker, queue_id) for queue_id in range(4)] == [2, 2, 0, 2]

    run(test())


def test_what_is_not_acknowledged_comes_again(tmp_path: Path) -> None:
    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock) as broker:
            await send(broker, "a", "b", "c")
            first = await pop(broker, invisible_time=OUT)
            await acknowledge(broker, first[1])
            clock.advance(OUT / 1000)
            again = await until(broker, 2)
            assert bodies(again) == ["a", "c"]
            for each in again:
                assert each.record.topic == TOPIC
                assert each.record.reconsume_times == 1
                assert each.record.properties["1ST_POP_TIME"] == first[0].receipt.split(" ")[1]
            await acknowledge(broker, *again)
            assert offset(broker) == 3
            assert offset(broker, topic=RETRY) == 2
            assert await pop(broker, poll_time=300) == []

    run(test())


def test_retry_topics_of_both_versions(tmp_path: Path) -> None:
    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path) as broker:
            await send(broker, "a")
            await pop(broker, invisible_time=100)
            async with asyncio.timeout(PATIENCE):
                while not broker.records(RETRY):  # noqa: ASYNC110 — by the broker's clock
                    await asyncio.sleep(0.05)
        async with running(tmp_path, clock=clock, enableRetryTopicV2=True) as broker:
            assert bodies(await until(broker, 1, invisible_time=OUT)) == ["a"]
            await send(broker, "b")
            assert bodies(await pop(broker, invisible_time=OUT)) == ["b"]
            clock.advance(OUT / 1000)
            again = await until(broker, 2)
            assert bodies(again) == ["a", "b"]
            assert {each.receipt.split(" ")[4] for each in again} == {"1", "2"}

    run(test())


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    """What is out is kept on the disk, and what was acknowledged of it, before and after."""

    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock, timerPrecisionMs=100) as broker:
            await send(broker, "a", "b", "c")
            found = await pop(broker, invisible_time=OUT)
            await acknowledge(broker, found[0])
        async with running(tmp_path, clock=clock, timerPrecisionMs=100) as broker:
            assert broker.state.store.core.config.consumer_offsets.query(GROUP, TOPIC, 0) == 3
            await acknowledge(broker, found[1])
            clock.advance(OUT / 1000)
            assert bodies(await until(broker, 1)) == ["c"]
            assert await pop(broker, poll_time=500) == []

    run(test())


def test_a_restart_repeats_no_redelivery(tmp_path: Path) -> None:
    """A stop commits what was revived since the last sync."""

    async def test() -> None:
        clock = AdvancedClock()
        settings = {"timerPrecisionMs": 100, "flushIntervalCommitLog": 3_600_000}
        async with running(tmp_path, clock=clock, reviveQueueNum=1, **settings) as broker:
            await send(broker, "a")
            (popped,) = await pop(broker, invisible_time=OUT)
            await change(broker, popped, OUT)
            clock.advance(OUT / 1000)
            await acknowledge(broker, *await until(broker, 1))
            points = "rmq_sys_REVIVE_LOG_DefaultCluster"
            end = broker.state.store.offsets[points, 0]
        async with running(tmp_path, clock=clock, reviveQueueNum=1, **settings) as broker:
            offsets = broker.state.store.core.config.consumer_offsets
            assert offsets.query(REVIVE_GROUP, points, 0) == end - 1
            clock.advance(OUT / 1000)
            assert await pop(broker, poll_time=500) == []

    run(test())


def test_a_crash_gives_out_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b")
            await pop(broker, invisible_time=3_600_000)
            broker.runtime.on_stop.clear()
        async with running(tmp_path) as broker:
            assert bodies(await pop(broker)) == ["a", "b"]

    run(test())


def test_kept_after_a_while_in_memory(tmp_path: Path) -> None:
    async def test() -> None:
        clock, settings = AdvancedClock(), {"popCkStayBufferTime": 100, "timerPrecisionMs": 100}
        async with running(tmp_path, clock=clock, **settings) as broker:
            await send(broker, "a", "b", "c")
            found = await pop(broker, invisible_time=OUT)
            await acknowledge(broker, found[1])
            async with asyncio.timeout(PATIENCE):
                while offset(broker) != 3:  # noqa: ASYNC110 — by the broker's clock
                    await asyncio.sleep(0.05)
            await acknowledge(broker, found[2])
            clock.advance(OUT / 1000)
            assert bodies(await until(broker, 1)) == ["a"]

    run(test())


def test_another_invisible_time(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "now", "later")
            now, later = await pop(broker)
            answer = await change(broker, later, 3_600_000)
            found = answer.header(ChangeInvisibleTimeAnswerHeader)
            assert found.invisible_time == 3_600_000
            assert (await change(broker, now, 0)).code == ResponseCode.SUCCESS
            (again,) = await until(broker, 1)
            assert again.body == "now"
            await acknowledge(broker, again)
            assert offset(broker) == 2
            # The receipt that was given up is worth nothing; the new one is.
            parts = later.receipt.split(" ")
            parts[0:3] = ["1", str(found.pop_time), str(found.invisible_time)]
            await acknowledge(broker, later._replace(receipt=" ".join(parts)))

    run(test())


@pytest.mark.parametrize("invisible_time", [0, OUT])
def test_a_suspended_delivery_is_no_attempt(tmp_path: Path, invisible_time: int) -> None:
    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock) as broker:
            await send(broker, "a")
            (popped,) = await pop(broker)
            for suspend, times in ((True, 0), (None, 1), (True, 1), (False, 2)):
                await change(broker, popped, invisible_time, suspend=suspend)
                clock.advance(invisible_time / 1000)
                (popped,) = await until(broker, 1)
                assert popped.record.reconsume_times == times
            await acknowledge(broker, popped)

    run(test())


def test_acknowledged_in_a_batch(tmp_path: Path) -> None:
    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock) as broker:
            await send(broker, "a", "b", "c")
            found = await pop(broker, invisible_time=OUT)
            start, popped, invisible, revive = map(int, found[0].receipt.split(" ")[:4])
            ack = BatchAck(GROUP, TOPIC, start, 0, revive, popped, invisible, "0", b"\x05")
            body = encode_body(BatchAcks("broker-a", [ack]))
            answer = await broker.ask(RequestCode.BATCH_ACK_MESSAGE, None, body)
            assert answer.code == ResponseCode.SUCCESS
            clock.advance(OUT / 1000)
            assert bodies(await until(broker, 1)) == ["b"]
            answer = await broker.ask(RequestCode.BATCH_ACK_MESSAGE, None, b"")
            assert answer.code == ResponseCode.NO_MESSAGE

    run(test())


def test_one_entry_of_a_batch_acknowledges_one_pop_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[list[int]] = []

    def keep(_topic: ReviveTopic, _key: Key, offsets: list[int], _due: int, _queue: int) -> None:
        kept.append(offsets)

    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, *map(str, range(100)))
            monkeypatch.setattr(ReviveTopic, "put_ack", keep)
            sets = (b"\xff" * 8192, b"\0" * 8 + b"\x11\x80", b"\0" * 8192)
            acks = [BatchAck(GROUP, TOPIC, 0, 0, 0, 1, 2, "0", bits) for bits in sets]
            body = encode_body(BatchAcks("broker-a", acks))
            answer = await broker.ask(RequestCode.BATCH_ACK_MESSAGE, None, body)
            assert answer.code == ResponseCode.SUCCESS
            assert kept == [[*range(64)], [64, 68, 79]]

    run(test())


def test_an_acknowledgement_that_is_not_kept_is_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, *map(str, range(100)))
            ack = BatchAck("g" * 300_000, TOPIC, 0, 0, 0, 1, 2, "0", b"\xff" * 8192)
            body = encode_body(BatchAcks("broker-a", [ack]))
            answer = await broker.ask(RequestCode.BATCH_ACK_MESSAGE, None, body)
            assert answer.code == ResponseCode.SUCCESS

    run(test())
    lines = [line for line in caplog.messages if "acknowledgement" in line]
    assert len(lines) == 1
    assert "64 messages from offset 0 on" in lines[0]
    assert max(map(len, caplog.messages)) < 1000


def test_waits_for_a_message(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "first")
            assert bodies(await pop(broker)) == ["first"]
            waiting = [asyncio.create_task(pop(broker, poll_time=LONG)) for _ in range(3)]
            await until_waiting(broker, 3)
            await send(broker, "a")
            done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            assert [bodies(task.result()) for task in done] == [["a"]]
            await send(broker, "b", "c", queue_id=1)
            await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            rest = [task.result() for task in pending if task.done()]
            assert bodies([each for found in rest for each in found])[:1] == ["b"]
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    run(test())


@pytest.mark.parametrize(
    ("exp", "exp_type"), [("red", "TAG"), ("red||blue", None), ("n > 1", "SQL92")]
)
def test_filtered(tmp_path: Path, exp: str, exp_type: str | None) -> None:
    async def test() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock) as broker:
            await send(broker, "a", properties="TAGS\x01green\x02n\x011\x02")
            await send(broker, "b", properties="TAGS\x01red\x02n\x012\x02")
            await send(broker, "c", properties="TAGS\x01green\x02n\x010\x02")
            found = await pop(broker, exp=exp, exp_type=exp_type, invisible_time=OUT)
            assert bodies(found) == ["b"]
            clock.advance(OUT / 1000)
            again = await until(broker, 1, exp=exp, exp_type=exp_type)
            assert bodies(again) == ["b"]
            assert offset(broker) == 3

    run(test())


@pytest.mark.parametrize("mode", [0, 1])
def test_where_a_new_group_begins(tmp_path: Path, mode: int) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b")
            assert bodies(await pop(broker, init_mode=mode)) == ["a", "b"]

    run(test())


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "None"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"max_msg_nums": 33}, ResponseCode.INVALID_PARAMETER),
        ({"queue_id": 99}, ResponseCode.INVALID_PARAMETER),
        ({"exp": "n >", "exp_type": "SQL92"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ({"consumer_group": "../x"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        ({"poll_time": 1, "born_time": 1}, ResponseCode.POLLING_TIMEOUT),
    ],
)
def test_refused(tmp_path: Path, fields: dict[str, object], code: ResponseCode) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            answer = await broker.ask(RequestCode.POP_MESSAGE, header(**fields))
            assert answer.code == code
            if code == ResponseCode.POLLING_TIMEOUT:
                assert answer.header(PopAnswerHeader).rest_num == 0

    run(test())


@pytest.mark.parametrize("receipt", ["", "x", "1 2 3", "0 1 2 77 0 b 0 0", "-1 1 2 0", "1 2 3 4 5"])
def test_no_receipt(tmp_path: Path, receipt: str) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            (found,) = await pop(broker)
            answer = await change(broker, found._replace(receipt=receipt), 5)
            assert answer.code == ResponseCode.INVALID_PARAMETER
            assert "not a receipt" in str(answer.remark)

    simulated.run(test())


NUMBERS = [0, -1, 2**31, 2**63 - 1, 2**63, 10**30, "x", None, 1.5]


def test_whatever_is_in_the_revive_topic(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a")
            core, topic = broker.state.store.core, "rmq_sys_REVIVE_LOG_DefaultCluster"
            good = {"so": 0, "pt": 1, "it": 1, "n": 1, "q": 0, "t": TOPIC, "c": GROUP, "d": [0]}
            ack = {"so": 0, "pt": 1, "q": 0, "t": TOPIC, "c": GROUP, "ao": 0, "aol": [0]}
            for name, value in [(name, value) for name in good for value in NUMBERS]:
                for tag, kept in (("ck", good), ("ack", ack), ("other", ack)):
                    odd = json.dumps(kept | {name: value}).encode()
                    assert core.puts.put(Message(topic, odd, tags=tag)).is_ok
            odd = json.dumps(good | {"t": "../x", "pt": 2}).encode()
            assert core.puts.put(Message(topic, odd, tags="ck")).is_ok
            last = json.dumps(good | {"pt": 1000}).encode()
            assert core.puts.put(Message(topic, last, tags="ck")).is_ok
            found = await until(broker, 1, queue_id=1)
            assert {each.body for each in found} == {"a"}

    run(test())
    assert not [line for line in caplog.records if line.levelname == "ERROR"]


def test_what_was_just_acknowledged_is_popped(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "first")
            for number in range(5):
                answer = await broker.send(to(TOPIC), f"next{number}".encode())
                assert answer.code == ResponseCode.SUCCESS
            assert len(await pop(broker)) == 6

    run(test())


def test_a_pop_of_a_deleted_topic_leaves_the_restart_to_the_next_one(tmp_path: Path) -> None:
    """A pop over many queues may come to one of them after its topic was deleted."""

    async def check() -> None:
        async with running(tmp_path) as broker:
            await send(broker, "a", "b")
            await acknowledge(broker, *await pop(broker))
            routes: dict[int, Any] = {route.code: route for route in broker.broker.routes}
            reading = routes[RequestCode.POP_MESSAGE].handler.__self__._reading
            offsets = broker.state.store.core.config.consumer_offsets
            offsets.commit(GROUP, TOPIC, 0, 2)
            wanted = PopRead(TOPIC, GROUP, 32, 60_000, 0, Choice())
            delete = TopicNameHeader(topic=TOPIC)
            await broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, delete)
            assert offsets.begins_anew(GROUP, TOPIC, 0)
            assert not list(reading.take(wanted, TOPIC, 0, reading.start(wanted)))
            assert offsets.begins_anew(GROUP, TOPIC, 0)
            assert offsets.query_topic(GROUP, TOPIC) == {}

    run(check())
