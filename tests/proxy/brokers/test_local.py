"""Clients that never register have a connection to the broker only while they call."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.grpc.messages import QueryRouteRequest
from tests import simulated
from tests.proxy.clients.of_clients import known, producer
from tests.proxy.serving import named, serving


def test_connections_of_unknown_clients_are_closed_once_nobody_uses_them(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T")
            await known(calls, "p1", producer("T"))
            before = len(calls.broker.broker.peers)
            request = QueryRouteRequest(topic=named("T"))
            for number in range(200):
                peer = f"10.0.0.1:{number + 1}"
                await calls.ask("QueryRoute", request, f"c{number}", peer=peer)
            assert len(calls.broker.broker.peers) == before + 200
            await asyncio.sleep(6)
            await calls.ask("QueryRoute", request, "c7", peer="10.0.0.1:8")
            await asyncio.sleep(5)
            assert len(calls.broker.broker.peers) == before + 1
            assert len(calls.broker.state.clients.producers["T"]) == 1

    simulated.run(run())
