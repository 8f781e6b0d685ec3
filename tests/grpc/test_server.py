"""Calls of the official library are served."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from mqlake.grpc.messages import (
    Code,
    HeartbeatRequest,
    Message,
    ReceiveMessageRequest,
    SendMessageRequest,
    TelemetryCommand,
    ThreadStackTrace,
)
from tests.grpc.serving import connected, serving


def test_unary_calls_have_one_response() -> None:
    async def scenario() -> None:
        async with serving() as port, connected(port) as client:
            request = SendMessageRequest(messages=[Message(body=b"12345")])
            answer = await client.SendMessage(request)
            assert answer.status.code == Code.OK
            assert [entry.offset for entry in answer.entries] == [5]

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [0, 16_300, 65_536, 1 << 20, 3 << 20, 7 << 20])
def test_requests_of_any_size_arrive(size: int) -> None:
    async def scenario() -> None:
        async with serving() as port, connected(port) as client:
            request = SendMessageRequest(messages=[Message(body=bytes(size))])
            answer = await client.SendMessage(request)
            assert answer.entries[0].offset == size

    asyncio.run(scenario())


def test_handlers_know_the_metadata() -> None:
    async def scenario() -> None:
        async with serving() as port, connected(port) as client:
            metadata = (("x-mq-client-id", "one"), ("x-mq-language", "PYTHON"))
            answer = await client.Heartbeat(HeartbeatRequest(), metadata=metadata, timeout=100)
            assert "'x-mq-client-id': 'one'" in answer.status.message
            assert ":path" not in answer.status.message

    asyncio.run(scenario())


def test_server_streams_have_any_number_of_responses() -> None:
    async def scenario() -> None:
        async with serving() as port, connected(port) as client:
            for count in (0, 1, 32, 3000):
                request = ReceiveMessageRequest(batch_size=count)
                found = [one async for one in client.ReceiveMessage(request)]
                assert len(found) == 1 + count

    asyncio.run(scenario())


def test_bidirectional_streams_answer_while_requests_arrive() -> None:
    async def scenario() -> None:
        async with serving() as port, connected(port) as client:
            call = client.Telemetry()
            for number in range(100):
                trace = ThreadStackTrace(nonce=str(number), thread_stack_trace="x" * number * 100)
                await call.write(TelemetryCommand(thread_stack_trace=trace))
                answer = await call.read()
                assert answer.thread_stack_trace == trace
            await call.done_writing()
            assert await call.read() is grpc.aio.EOF
            assert await call.code() is grpc.StatusCode.OK

    asyncio.run(scenario())


def test_unknown_methods_are_unimplemented() -> None:
    async def scenario() -> None:
        async with serving() as port, connected(port) as client:
            stub = client.channel.unary_unary("/apache.rocketmq.v2.MessagingService/Nothing")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub(b"")
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED

    asyncio.run(scenario())


def test_many_calls_are_served_at_a_time() -> None:
    async def scenario() -> None:
        async with serving() as port, connected(port) as client:
            request = SendMessageRequest(messages=[Message(body=bytes(100))])
            calls = [client.SendMessage(request) for _ in range(500)]
            calls += [client.Heartbeat(HeartbeatRequest()) for _ in range(500)]
            answers = await asyncio.gather(*calls)
            assert all(answer.status.code == Code.OK for answer in answers)

    asyncio.run(scenario())
