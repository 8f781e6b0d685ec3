"""What is sent on a connection is written together."""

from __future__ import annotations

import asyncio

import pytest

from mqlake.grpc.call import Call, FinishedCall
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.sending import StreamOutput
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.outlet import Flushes, Outlet, wake
from mqlake.grpc.status import GrpcError, GrpcStatus
from tests.grpc.outlets import Sent
from tests.until import rounds


def test_one_round_of_the_loop_is_one_write() -> None:
    async def scenario() -> None:
        sent = Sent()
        for number in (1, 3, 5):
            sent.outlet.grant(number, number)
        await rounds(2)
        assert sent.flushes == 1
        assert [frame[1] for frame in sent.frames()] == [1, 3, 5]
        assert sent.outlet.size == 0

    asyncio.run(scenario())


def test_a_connection_that_is_served_decides_when_to_write() -> None:
    async def scenario() -> None:
        sent = Sent()
        sent.outlet.begin_serving()
        sent.outlet.grant(1, 1)
        await rounds(2)
        sent.outlet.end_serving()
        assert sent.flushes == 0
        sent.outlet.grant(1, 1)
        await rounds(2)
        assert sent.flushes == 1

    asyncio.run(scenario())


def test_data_is_sent_as_the_client_allows() -> None:
    async def scenario() -> None:
        sent = Sent()
        output = StreamOutput(1, 3)
        sent.outlet.send_data(output, b"12345")
        assert sent.frames() == [(frames.DATA, 1, b"123")]
        assert sent.moved == [1]
        assert output.waiting == 2

    asyncio.run(scenario())


def test_nothing_is_sent_after_the_end() -> None:
    async def scenario() -> None:
        sent = Sent()
        sent.outlet.grant(1, 1)
        sent.outlet.clear()
        sent.outlet.grant(1, 1)
        sent.outlet.send_data(StreamOutput(1, 3), b"1")
        assert sent.frames() == []
        assert sent.outlet.windows.waiting == 0

    asyncio.run(scenario())


def test_requests_progress_by_more_than_a_few_bytes() -> None:
    async def scenario() -> None:
        outlet = Sent().outlet
        outlet.count_partial(1)
        began = outlet.moved
        assert outlet.began == began
        while asyncio.get_running_loop().time() == began:  # noqa: ASYNC110 (the clock)
            await asyncio.sleep(0)
        outlet.count_partial(65_534)
        assert outlet.moved == began
        outlet.count_partial(1)
        assert outlet.moved > began == outlet.began
        outlet.count_partial(-outlet.partial)
        assert outlet.partial == 0

    asyncio.run(scenario())


def test_handlers_that_end_after_their_calls_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def scenario() -> None:
        outlet = Sent().outlet
        for error in (ValueError("wrong"), GrpcError(GrpcStatus.ABORTED, "expected")):
            task = asyncio.ensure_future(fail(error))
            outlet.note_lingering()
            assert outlet.lingering == 1
            await asyncio.wait([task])
            outlet.end_lingering(task)
            assert outlet.lingering == 0

    asyncio.run(scenario())
    assert caplog.text.count("a call that was cancelled failed") == 1
    assert "expected" not in caplog.text


def test_a_listener_that_fails_ends_no_call(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        def fail(finished: FinishedCall) -> None:
            raise ValueError(finished)

        flushes = Flushes(asyncio.get_running_loop(), fail)
        outlet = Outlet(flushes, GrpcLimits(), list[int], list[int])
        call = Call("Heartbeat", {}, peer="p", local="l")
        outlet.note_finished(FinishedCall(call, GrpcStatus.OK, 0.0, 0, 0))

    asyncio.run(scenario())
    assert "the end of a call could not be noted" in caplog.text


def test_a_connection_that_cannot_be_written_to_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        def fail() -> None:
            raise OSError("gone")

        written: list[int] = []
        flushes = Flushes(asyncio.get_running_loop())
        flushes.add(fail)
        flushes.add(lambda: written.append(1))
        await rounds(2)
        assert written == [1]

    asyncio.run(scenario())
    assert "could not be written to" in caplog.text


def test_a_waiter_is_woken_once() -> None:
    async def scenario() -> None:
        waiter = Sent().outlet.new_waiter()
        wake(None)
        wake(waiter)
        wake(waiter)
        assert waiter.done()

    asyncio.run(scenario())
