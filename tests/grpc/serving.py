"""Servers of gRPC for tests, and calls to them by the official library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from mqlake.grpc.call import Call
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.messages import (
    Code,
    HeartbeatRequest,
    HeartbeatResponse,
    Message,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
    SendResultEntry,
    Status,
    TelemetryCommand,
)
from mqlake.grpc.method import Method, MethodKind, bidirectional, unary
from mqlake.grpc.server import GrpcServer


def send(call: Call, request: SendMessageRequest) -> SendMessageResponse:
    """Answer with the size of each body."""
    entries = [SendResultEntry(offset=len(message.body)) for message in request.messages]
    return SendMessageResponse(status=Status(code=Code.OK), entries=entries)


async def heartbeat(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    """Answer later, with the metadata of the call."""
    await asyncio.sleep(0)
    return HeartbeatResponse(status=Status(code=Code.OK, message=repr(dict(call.metadata))))


async def receive(
    call: Call, request: ReceiveMessageRequest
) -> AsyncIterator[ReceiveMessageResponse]:
    """Send as many messages as asked for, each with a body of 1,000 bytes."""
    yield ReceiveMessageResponse(status=Status(code=Code.OK))
    for _ in range(request.batch_size):
        yield ReceiveMessageResponse(message=Message(body=bytes(1000)))


async def telemetry(
    call: Call, requests: AsyncIterator[TelemetryCommand]
) -> AsyncIterator[TelemetryCommand]:
    """Send back what arrives."""
    async for request in requests:
        yield request


METHODS = [
    unary("SendMessage", SendMessageRequest, SendMessageResponse, send),
    unary("Heartbeat", HeartbeatRequest, HeartbeatResponse, heartbeat),
    Method(
        "ReceiveMessage",
        ReceiveMessageRequest,
        ReceiveMessageResponse,
        MethodKind.SERVER_STREAM,
        receive,
    ),
    bidirectional("Telemetry", TelemetryCommand, TelemetryCommand, telemetry),
]


def with_handler(name: str, handler: Any) -> list[Method]:
    """Return the methods, one of them with another handler."""
    return [one._replace(handler=handler) if one.name == name else one for one in METHODS]


class Client:
    """Calls by grpcio."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        kinds = {"unary": "unary_unary", "server stream": "unary_stream"}
        for method in METHODS:
            make = getattr(channel, kinds.get(method.kind.value, "stream_stream"))
            stub = make(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
            setattr(self, method.name, stub)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@asynccontextmanager
async def serving(
    methods: list[Method] | None = None, limits: GrpcLimits | None = None, **others: Any
) -> AsyncIterator[int]:
    """Start a server; return its port."""
    server = GrpcServer(methods or METHODS, limits, **others)
    port = await server.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await server.stop(0.0)


@asynccontextmanager
async def connected(port: int, **options: Any) -> AsyncIterator[Client]:
    """Connect to a server."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", **options) as channel:
        yield Client(channel)
