"""Traces are sent together, in the background, and never hold anybody up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mqlake.client.errors import NotStoredError
from mqlake.client.trace import tracer as module
from mqlake.client.trace.records import TraceRecord
from mqlake.client.trace.tracer import MOST_RECORDS, Tracer
from tests.until import PATIENCE

Send = Callable[[bytes, str], Awaitable[object]]


def record(number: int) -> TraceRecord:
    return TraceRecord(f"record {number}\x02", (f"ID-{number}", "key"))


def run(test: Callable[[Tracer], Awaitable[None]], send: Send) -> Tracer:
    async def work() -> Tracer:
        tracer = Tracer(send)
        await test(tracer)
        await tracer.close()
        assert len(asyncio.all_tasks()) == 1
        return tracer

    return asyncio.run(work())


def test_records_are_sent_together_with_their_keys() -> None:
    sent: list[tuple[bytes, str]] = []

    async def send(body: bytes, keys: str) -> None:
        sent.append((body, keys))

    async def test(tracer: Tracer) -> None:
        for number in range(150):
            tracer.note(record(number))
        assert not sent

    assert run(test, send).dropped == 0
    assert [body.count(b"\x02") for body, _ in sent] == [100, 50]
    assert b"".join(body for body, _ in sent) == b"".join(
        record(number).text.encode() for number in range(150)
    )
    assert sent[1][1].split() == ["ID-100", "key", *(f"ID-{number}" for number in range(101, 150))]


def test_a_record_is_sent_soon_without_others() -> None:
    arrived = asyncio.Event()

    async def send(body: bytes, keys: str) -> None:
        assert (body, keys) == (b"record 1\x02", "ID-1 key")
        arrived.set()

    async def test(tracer: Tracer) -> None:
        tracer.note(record(1))
        async with asyncio.timeout(PATIENCE):
            await arrived.wait()

    run(test, send)


def test_long_keys_are_split_over_messages() -> None:
    sent: list[str] = []

    async def send(body: bytes, keys: str) -> None:
        sent.append(keys)

    async def test(tracer: Tracer) -> None:
        for number in range(10):
            tracer.note(TraceRecord("text\x02", (f"{number}" * 1500,)))

    run(test, send)
    assert [len(keys.split()) for keys in sent] == [2] * 5


def test_trace_records_beyond_the_limit_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    never = asyncio.Event()

    async def send(body: bytes, keys: str) -> None:
        await never.wait()

    async def test(tracer: Tracer) -> None:
        for number in range(MOST_RECORDS + 5):
            tracer.note(record(number))
        assert tracer.dropped == 5

    module_wait, module._AT_CLOSE = module._AT_CLOSE, 0.05
    try:
        tracer = run(test, send)
    finally:
        module._AT_CLOSE = module_wait
    assert tracer.dropped == MOST_RECORDS + 5 - 100  # the hundred that were under way are unknown
    assert "the tracer was closed" in caplog.text


@pytest.mark.parametrize("error", [NotStoredError("gone"), ValueError("odd")])
def test_a_broker_that_refuses_is_logged_once(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def send(body: bytes, keys: str) -> None:
        raise error

    async def test(tracer: Tracer) -> None:
        for number in range(250):
            tracer.note(record(number))

    assert run(test, send).dropped == 250
    assert caplog.text.count("traces were not sent") == 1
