"""Messages that wait for a delivery time are taken back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from mqlake.errors import DiskError
from mqlake.formats.properties import CANCEL, DELIVER_MS, UNIQ_KEY, encode_pairs
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.handles.recall import RecallHandle, parse_recall_handle
from mqlake.protocol.headers.recall import RecallAnswerHeader, RecallHeader
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.testing.advanced_clock import AdvancedClock
from tests import simulated
from tests.broker.running import Running, running, to
from tests.until import until

TOPIC = "Later"
KEY = "7F0000010001"
SETTINGS = {"recallMessageEnable": True, "timerWheelEnable": True, "timerPrecisionMs": 100}


async def send_later(broker: Running, body: bytes, key: str, milliseconds: int) -> Command:
    """Send a message that is delivered after so long."""
    due = broker.state.store.clock.milliseconds() + milliseconds
    properties = encode_pairs({UNIQ_KEY: key, DELIVER_MS: str(due)}).decode()
    answer = await broker.send(to(TOPIC, properties=properties), body)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return answer


def handle_of(answer: Command) -> str | None:
    return answer.header(SendMessageResponseHeader).recall_handle


async def recall(
    broker: Running, handle: str, topic: str = TOPIC, group: str = "producers"
) -> Command:
    header = RecallHeader(topic=topic, recall_handle=handle, producer_group=group)
    return await broker.ask(RequestCode.RECALL_MESSAGE, header)


async def bodies(broker: Running, least: int) -> list[bytes]:
    """Return what was delivered, once there is so much."""
    await until(lambda: len(broker.records(TOPIC)) >= least)
    return [bytes(record.body) for record in broker.records(TOPIC)]


def test_a_recall_without_a_producer_group(tmp_path: Path) -> None:
    """RocketMQ's proxy sends such recalls for its gRPC clients."""

    async def run() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock, **SETTINGS) as broker:
            handle = handle_of(await send_later(broker, b"first", KEY, 60_000))
            await send_later(broker, b"second", "7F0000010002", 60_100)
            assert handle is not None
            answer = await recall(broker, handle, group="")
            assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
            clock.advance(60.1)
            assert await bodies(broker, 1) == [b"second"]

    simulated.run(run())


def test_a_producer_cannot_cancel_the_message_of_another(tmp_path: Path) -> None:
    async def run() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock, **SETTINGS) as broker:
            await send_later(broker, b"first", KEY, 60_000)
            due = str(clock.milliseconds() + 59_990)
            forged = {UNIQ_KEY: "7F0000010002", DELIVER_MS: due, CANCEL: f"{TOPIC}+{KEY}"}
            properties = encode_pairs(forged).decode()
            await broker.send(to(TOPIC, properties=properties), b"second")
            clock.advance(60.1)
            assert sorted(await bodies(broker, 2)) == [b"first", b"second"]

    simulated.run(run())


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_what_is_taken_back_is_not_delivered(tmp_path: Path, flush: str) -> None:
    async def run() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock, **SETTINGS, flushDiskType=flush) as broker:
            first = await send_later(broker, b"first", KEY, 60_000)
            await send_later(broker, b"second", "7F0000010002", 60_100)
            handle = handle_of(first)
            assert handle is not None
            parts = parse_recall_handle(handle)
            assert parts[:2] == (TOPIC, "broker-a")
            assert parts.unique_key == KEY
            answer = await recall(broker, handle)
            assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
            assert answer.header(RecallAnswerHeader) == RecallAnswerHeader(
                msg_id=KEY, region="DefaultRegion"
            )
            clock.advance(60.1)
            assert await bodies(broker, 1) == [b"second"]
            await asyncio.sleep(0.3)
            assert await bodies(broker, 1) == [b"second"]

    simulated.run(run())


def test_only_messages_that_wait_have_a_handle(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            over = await send_later(broker, b"at once", KEY, -5)
            assert handle_of(over) is None
            named = encode_pairs({UNIQ_KEY: KEY, "aTIMER_DELAY": "1"}).decode()
            other = await broker.send(to(TOPIC, properties=named))
            assert handle_of(other) is None
            assert other.code == ResponseCode.SUCCESS

    simulated.run(run())


def test_a_message_that_cannot_be_read_back_is_answered_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise DiskError("commitlog/0: Input/output error")

    async def run() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            monkeypatch.setattr(broker.state.store.reads, "record_at", fail)
            assert handle_of(await send_later(broker, b"later", KEY, 60_000)) is None

    simulated.run(run())


def test_what_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await send_later(broker, b"there", KEY, -5)
            now = time.time_ns() // 1_000_000
            good = RecallHandle(TOPIC, "broker-a", now + 60_000, KEY)
            illegal, missing = ResponseCode.ILLEGAL_OPERATION, ResponseCode.TOPIC_NOT_EXIST
            for handle, topic, code, reason in (
                (good, "Missing", missing, "the topic[Missing] not exist"),
                (good._replace(topic="Other"), TOPIC, illegal, "topic not match"),
                (good._replace(broker_name="b"), TOPIC, illegal, "broker service not available"),
                (good._replace(deliver_ms=now - 1), TOPIC, illegal, "timestamp invalid"),
                (good._replace(deliver_ms=now + 10**12), TOPIC, illegal, "timestamp invalid"),
            ):
                answer = await recall(broker, handle.text, topic)
                assert (answer.code, reason in (answer.remark or "")) == (code, True)
            answer = await recall(broker, "no handle")
            assert answer.code == illegal
            assert answer.header(RecallAnswerHeader).region == "DefaultRegion"

    simulated.run(run())


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"recallMessageEnable": False}, ResponseCode.NO_PERMISSION),
        (
            {"brokerPermission": 4, "allowRecallWhenBrokerNotWriteable": False},
            ResponseCode.SERVICE_NOT_AVAILABLE,
        ),
        (
            {"startAcceptSendRequestTimeStamp": 4 * 10**12},
            ResponseCode.SERVICE_NOT_AVAILABLE,
        ),
        ({"brokerPermission": 4}, ResponseCode.ILLEGAL_OPERATION),  # that of the handle
    ],
)
def test_settings_that_forbid_it(
    tmp_path: Path, settings: dict[str, object], code: ResponseCode
) -> None:
    async def run() -> None:
        async with running(tmp_path, **(SETTINGS | settings)) as broker:
            answer = await recall(broker, "bm8gaGFuZGxl", "Nothing")
            assert answer.code == code

    simulated.run(run())
