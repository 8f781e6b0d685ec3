"""`mqlake proxy` as a program: it listens, publishes its metrics, and stops."""

from __future__ import annotations

import asyncio
import socket
from urllib.request import urlopen

import grpc
import pytest

from mqlake.grpc.messages import Code, QueryRouteRequest, QueryRouteResponse, Resource
from mqlake.programs.proxy import ProxyOptions, ProxyProgram
from mqlake.proxy.settings import ProxySettings
from tests.broker.running import next_port


def test_it_serves_calls_and_metrics_until_it_is_stopped() -> None:
    metrics = next_port()
    options = ProxyOptions(f"127.0.0.1:{next_port()}", port=0, metrics=("127.0.0.1", metrics))

    async def run() -> int:
        async with ProxyProgram(options, ProxySettings()) as program:
            assert program.not_ready() is None
            async with grpc.aio.insecure_channel(f"127.0.0.1:{program.port}") as channel:
                route = channel.unary_unary(
                    "/apache.rocketmq.v2.MessagingService/QueryRoute",
                    request_serializer=QueryRouteRequest.SerializeToString,
                    response_deserializer=QueryRouteResponse.FromString,
                )
                request = QueryRouteRequest(topic=Resource(name="T"))
                found = await route(request, metadata=(("x-mq-client-id", "c"),))
                assert found.status.code == Code.INTERNAL_SERVER_ERROR
                assert "no name server answers" in found.status.message
            body = await asyncio.to_thread(_get, f"http://127.0.0.1:{metrics}/metrics")
            assert b'method="QueryRoute"' in body
            assert b"mqlake_grpc_connections" in body
            assert b"mqlake_grpc_clients" in body
            return program.port

    port = asyncio.run(run())
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 100).close()


def _get(url: str) -> bytes:
    with urlopen(url, timeout=100) as answer:
        return answer.read()
