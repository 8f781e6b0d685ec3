"""Sends that are not taken: upstream's code, and a remark that says why."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mqlake.errors import DiskError
from mqlake.formats.config.topics import PERM_READ, Topic
from mqlake.protocol.bodies.route import KVTable
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.send import SendMessageResponseHeader
from tests.broker.running import Running, running, to

Ask = Callable[[Running], Awaitable[Command]]


async def batch_to_retry_topic(broker: Running) -> Command:
    return await broker.ask(RequestCode.SEND_BATCH_MESSAGE, to("%RETRY%group", batch=True), b"")


async def malformed_batch(broker: Running) -> Command:
    return await broker.ask(RequestCode.SEND_BATCH_MESSAGE, to("Orders", batch=True), b"?" * 30)


async def without_header(broker: Running) -> Command:
    return await broker.ask(RequestCode.SEND_MESSAGE_V2, None, b"")


def send(topic: str, body: bytes = b"x", **fields: object) -> Ask:
    async def ask(broker: Running) -> Command:
        return await broker.send(to(topic, **fields), body)

    return ask


CASES: dict[str, tuple[Ask, ResponseCode, str]] = {
    "a path": (send("../../x"), ResponseCode.INVALID_PARAMETER, "illegal characters"),
    "blank": (send(" "), ResponseCode.INVALID_PARAMETER, "blank"),
    "long": (send("x" * 128), ResponseCode.INVALID_PARAMETER, "longer than topic max length: 127"),
    "long of a group": (send("%DLQ%" + "x" * 251), ResponseCode.INVALID_PARAMETER, "255"),
    "the schedule topic": (send("SCHEDULE_TOPIC_XXXX"), ResponseCode.NO_PERMISSION, "forbidden"),
    "half messages": (send("RMQ_SYS_TRANS_HALF_TOPIC"), ResponseCode.NO_PERMISSION, "forbidden"),
    "no default topic": (
        send("New", default_topic="Missing"),
        ResponseCode.TOPIC_NOT_EXIST,
        "topic[New] not exist",
    ),
    "a default topic that nothing inherits from": (
        send("New", default_topic="BenchmarkTest"),
        ResponseCode.TOPIC_NOT_EXIST,
        "topic[New] not exist",
    ),
    "no such queue": (
        send("Orders", queue_id=4),
        ResponseCode.INVALID_PARAMETER,
        "request queueId[4] is illegal",
    ),
    "a body that is too long": (
        send("Orders", b"x" * 2001),
        ResponseCode.MESSAGE_ILLEGAL,
        "the maximum (maxMessageSize) is 2000",
    ),
    "properties that are too long": (
        send("Orders", properties="A\x01" + "x" * 33_000 + "\x02"),
        ResponseCode.MESSAGE_ILLEGAL,
        "properties have 33",
    ),
    "a batch to a retry topic": (
        batch_to_retry_topic,
        ResponseCode.MESSAGE_ILLEGAL,
        "batch request does not support retry group",
    ),
    "a malformed batch": (malformed_batch, ResponseCode.MESSAGE_ILLEGAL, "does not fit"),
    "no header": (without_header, ResponseCode.SYSTEM_ERROR, "missing required field"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(tmp_path: Path, case: str) -> None:
    ask, code, words = CASES[case]

    async def run() -> None:
        async with running(tmp_path, maxMessageSize=2000) as broker:
            answer = await ask(broker)
            assert (answer.code, words in (answer.remark or "")) == (code, True), answer.remark
            assert list(broker.state.store.topics()) == []

    asyncio.run(run())


def test_ordered_topics_are_closed_where_the_broker_is_not_writable(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, brokerPermission=PERM_READ) as broker:
            broker.state.topics.put(Topic("Ordered", order=True))
            broker.state.topics.put(Topic("Other"))
            answer = await broker.send(to("Ordered"))
            assert answer.code == ResponseCode.NO_PERMISSION
            # Producers find no queue to write in the route; one that sends all the same is heard.
            assert (await broker.send(to("Other"))).code == ResponseCode.SUCCESS

    asyncio.run(run())


def test_nothing_is_taken_before_the_time_that_the_settings_name(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, startAcceptSendRequestTimeStamp=4_000_000_000_000) as broker:
            answer = await broker.send(to("Orders"))
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert (answer.remark or "").startswith("broker unable to service, until 2096-")

    asyncio.run(run())


def test_a_store_that_takes_nothing_says_why(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            broker.state.store.core.retention.not_writable = "the disk is full"
            broker.state.store.core.tick()
            answer = await broker.send(to("Orders"))
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert "the disk is full" in (answer.remark or "")
            told = await broker.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
            assert decode_body(KVTable, told.body).table["busy_NOT_AVAILABLE"] == "1"

    asyncio.run(run())


def test_a_disk_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    async def run() -> None:
        async with running(tmp_path, flushDiskType="SYNC_FLUSH") as broker:
            assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS
            monkeypatch.setattr(os, "fdatasync", fail)
            answer = await broker.send(to("Orders"))
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "Input/output error" in (answer.remark or "")
            answer = await broker.send(to("Orders"))
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert broker.state.busy.counts == {"DISK_FAILED": 1, "NOT_AVAILABLE": 1}
            monkeypatch.undo()

    with pytest.raises(DiskError, match="Input/output error"):
        asyncio.run(run())


class SlowDisk:
    """Lets no sync end before it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch, self._is_free = monkeypatch, threading.Event()
        self._sync = os.fdatasync

    def __enter__(self) -> None:
        self._monkeypatch.setattr(os, "fdatasync", self._wait)

    def __exit__(self, *failure: object) -> None:
        self._is_free.set()

    def _wait(self, descriptor: int) -> None:
        self._is_free.wait()
        self._sync(descriptor)


def test_too_many_sends_that_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        settings = {"flushDiskType": "SYNC_FLUSH", "sendThreadPoolQueueCapacity": 2}
        async with running(tmp_path, **settings) as broker:
            assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS
            log = broker.state.store.core.log
            size = log.end
            with SlowDisk(monkeypatch):
                waiting = [asyncio.create_task(broker.send(to("Orders"))) for _ in range(2)]
                while log.end < 3 * size:  # noqa: ASYNC110 (nothing tells)
                    await asyncio.sleep(0)
                refused = await broker.send(to("Orders"))
                assert not any(task.done() for task in waiting)
            assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
            waiting_for = "2 sends wait for the disk or for slaves"
            assert refused.remark == f"[WAITING_FOR_DISK]broker busy: {waiting_for}"
            assert [answer.code for answer in await asyncio.gather(*waiting)] == [0, 0]
            assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS

    asyncio.run(run())


def test_a_sync_that_takes_too_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        settings = {"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": 100}
        async with running(tmp_path, **settings) as broker:
            with SlowDisk(monkeypatch):
                answer = await broker.send(to("Orders"))
            assert answer.code == ResponseCode.FLUSH_DISK_TIMEOUT
            # It is in the log, so the producer is told where.
            assert answer.header(SendMessageResponseHeader).queue_offset == 0
            assert broker.state.busy.counts == {"FLUSH_TIMEOUT": 1}

    asyncio.run(run())
