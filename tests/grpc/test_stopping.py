"""A server stops when its handlers have."""

from __future__ import annotations

import asyncio

from mqlake.grpc.call import Call
from mqlake.grpc.http2 import frames
from mqlake.grpc.messages import HeartbeatRequest, HeartbeatResponse, SendMessageRequest
from mqlake.grpc.responses import prefixed
from mqlake.grpc.server import GrpcServer
from tests.grpc.raw_client import call, call_of, data, headers, raw_client
from tests.grpc.serving import METHODS, with_handler


def test_cancelled_handlers_have_ended_when_the_server_has_stopped() -> None:
    async def scenario() -> None:
        started, has_ended = asyncio.Event(), False

        async def wait(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            nonlocal has_ended
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                for _ in range(5):
                    await asyncio.sleep(0)
                has_ended = True
            return HeartbeatResponse()

        server = GrpcServer(with_handler("Heartbeat", wait))
        port = await server.start("127.0.0.1", 0)
        async with raw_client(port) as client:
            await client.send(call(1, "Heartbeat", HeartbeatRequest()))
            await started.wait()
            await server.stop(0.0)
            assert has_ended

    asyncio.run(scenario())


def test_a_server_that_starts_again_keeps_deadlines() -> None:
    async def scenario() -> None:
        async def wait(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            await asyncio.Event().wait()
            return HeartbeatResponse()

        server = GrpcServer(with_handler("Heartbeat", wait))
        await server.start("127.0.0.1", 0)
        await server.stop(0.0)
        port = await server.start("127.0.0.1", 0)
        async with raw_client(port) as client:
            fields = call_of("Heartbeat", grpc_timeout="1m")
            await client.send(headers(1, fields), data(1, prefixed(b"")))
            assert (await client.status())[0] == "4"
        await server.stop(0.0)

    asyncio.run(scenario())


def test_what_meets_the_farewell_can_be_sent_elsewhere() -> None:
    async def scenario() -> None:
        server = GrpcServer(METHODS)
        port = await server.start("127.0.0.1", 0)
        async with raw_client(port) as client:
            await client.send(call(1, "SendMessage", SendMessageRequest()))
            assert (await client.status())[0] == "0"
            (connection,) = server.connections
            connection.go_away()
            await client.send(call(3, "SendMessage", SendMessageRequest()))
            assert (await client.next(frames.GOAWAY)).payload[3] == 1
            refused = await client.next(frames.RST_STREAM)
            assert int.from_bytes(refused.payload) == frames.ErrorCode.REFUSED_STREAM
            assert await client.frame() is None
        await server.stop(0.0)

    asyncio.run(scenario())
