"""python -m benchmarks.grpc.servers KIND: serve SendMessage, and print the port.

Each server parses the request and answers with the same response; none does more.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

from mqlake.grpc.messages import Code, SendMessageRequest, SendMessageResponse, Status
from mqlake.grpc.method import SERVICE

NAME = "SendMessage"
PATH = f"/{SERVICE}/{NAME}"
RESPONSE = SendMessageResponse(status=Status(code=Code.OK))


async def serve_mqlake() -> int:
    """Serve by mqlake's own server."""
    from mqlake.grpc.call import Call
    from mqlake.grpc.method import unary
    from mqlake.grpc.server import GrpcServer

    def send(_call: Call, _request: SendMessageRequest) -> SendMessageResponse:
        return RESPONSE

    server = GrpcServer([unary(NAME, SendMessageRequest, SendMessageResponse, send)])
    KEPT.append(server)
    return await server.start("127.0.0.1", 0)


async def serve_mqlake_async() -> int:
    """Serve by mqlake's own server, with a handler that is a coroutine."""
    from mqlake.grpc.call import Call
    from mqlake.grpc.method import unary
    from mqlake.grpc.server import GrpcServer

    async def send(_call: Call, _request: SendMessageRequest) -> SendMessageResponse:
        return RESPONSE

    server = GrpcServer([unary(NAME, SendMessageRequest, SendMessageResponse, send)])
    KEPT.append(server)
    return await server.start("127.0.0.1", 0)


async def serve_grpcio() -> int:
    """Serve by grpcio's server for asyncio."""
    import grpc
    import grpc.aio

    async def send(_request: SendMessageRequest, _context: object) -> SendMessageResponse:
        return RESPONSE

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(
        send,
        request_deserializer=SendMessageRequest.FromString,
        response_serializer=SendMessageResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {NAME: handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    KEPT.append(server)
    return port


async def serve_grpclib() -> int:
    """Serve by grpclib, which uses h2."""
    from grpclib.const import Cardinality, Handler
    from grpclib.server import Server

    class Service:
        async def send(self, stream: Any) -> None:
            await stream.recv_message()
            await stream.send_message(RESPONSE)

        def __mapping__(self) -> dict[str, Any]:
            kinds = (Cardinality.UNARY_UNARY, SendMessageRequest, SendMessageResponse)
            return {PATH: Handler(self.send, *kinds)}

    server = Server([Service()])
    port = _free_port()
    await server.start("127.0.0.1", port)
    KEPT.append(server)
    return port


class H2Protocol(asyncio.Protocol):
    """The least that a server on h2 does: one pass over what arrived, one write."""

    def __init__(self) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection

        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.bodies: dict[int, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(1 << 30)
        self.transport.write(self.h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        from h2.events import DataReceived, StreamEnded

        for event in self.h2.receive_data(data):
            if isinstance(event, DataReceived):
                number = event.stream_id
                self.bodies[number] = self.bodies.get(number, b"") + event.data
            elif isinstance(event, StreamEnded):
                self.answer(event.stream_id)
        self.transport.write(self.h2.data_to_send())

    def answer(self, number: int) -> None:
        SendMessageRequest.FromString(self.bodies.pop(number)[5:])
        message = RESPONSE.SerializeToString()
        head = [(":status", "200"), ("content-type", "application/grpc")]
        self.h2.send_headers(number, head)
        self.h2.send_data(number, b"\0" + len(message).to_bytes(4) + message)
        self.h2.send_headers(number, [("grpc-status", "0")], end_stream=True)


async def serve_h2() -> int:
    """Serve by a thin server on h2."""
    server = await asyncio.get_running_loop().create_server(H2Protocol, "127.0.0.1", 0)
    KEPT.append(server)
    return int(server.sockets[0].getsockname()[1])


async def _application(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Serve a call as ASGI has it."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    SendMessageRequest.FromString(body[5:])
    message = RESPONSE.SerializeToString()
    head = [(b"content-type", b"application/grpc")]
    start = {"type": "http.response.start", "status": 200, "headers": head, "trailers": True}
    await send(start)
    data = b"\0" + len(message).to_bytes(4) + message
    await send({"type": "http.response.body", "body": data})
    await send({"type": "http.response.trailers", "headers": [(b"grpc-status", b"0")]})


async def serve_h2corn() -> int:
    """Serve by h2corn, an HTTP/2 server in Rust for ASGI applications."""
    from h2corn import Config, Server

    port = _free_port()
    config = Config(
        bind=(f"127.0.0.1:{port}",),
        access_log=False,
        grpc=True,
        lifespan="off",
        runtime_threads=1,
        loop="asyncio",
        max_concurrent_streams=1024,
    )
    server = Server(_application, config)
    KEPT.append(asyncio.ensure_future(server.serve()))
    return port


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


KEPT: list[object] = []
KINDS: dict[str, Callable[[], Awaitable[int]]] = {
    "grpcio": serve_grpcio,
    "grpclib": serve_grpclib,
    "h2": serve_h2,
    "h2corn": serve_h2corn,
    "mqlake": serve_mqlake,
    "mqlake, async handler": serve_mqlake_async,
}


async def _serve(kind: str) -> None:
    port = await KINDS[kind]()
    print(port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[2] == "uvloop":
        import uvloop

        uvloop.run(_serve(sys.argv[1]))
    else:
        asyncio.run(_serve(sys.argv[1]))
