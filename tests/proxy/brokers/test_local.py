"""Which connection to the broker the calls of a client use, and how long."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.grpc.messages import Code, HeartbeatRequest, QueryRouteRequest
from tests import simulated
from tests.auth.closed import CLOSED
from tests.proxy.clients.of_clients import consumer, known, producer
from tests.proxy.serving import named, serving
from tests.proxy.test_gate import user
from tests.until import until


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


def test_a_client_id_of_another_host_does_not_pass_its_policies(tmp_path: Path) -> None:
    """The user may do something from one host only, where a client of it is registered."""

    async def run() -> None:
        async with serving(tmp_path, **CLOSED, authorizationEnabled="true") as calls:
            calls.topic("T")
            access = user(calls, "u", "Topic:T Pub", source="10.0.0.1")
            here, there = {"peer": "10.0.0.1:1"} | access, {"peer": "10.0.0.2:1"} | access
            await known(calls, "p1", producer("T"), **here)
            request = QueryRouteRequest(topic=named("T"))
            for peer, code in ((here, Code.OK), (there, Code.UNAUTHORIZED)):
                found = await calls.ask("QueryRoute", request, "p1", **peer)
                assert found.status.code == code

    simulated.run(run())


def test_a_client_that_moves_to_another_host_is_registered_from_there(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T")
            producers, beat = calls.broker.state.clients.producers, HeartbeatRequest()
            await known(calls, "p1", producer("T"), peer="10.0.0.1:1")
            found = await calls.ask("Heartbeat", beat, "p1", peer="10.0.0.2:1")
            assert found.status.code == Code.OK
            await until(lambda: len(producers["T"]) == 1)
            assert [each.peer.address for each in producers["T"]] == ["10.0.0.2:1"]

    simulated.run(run())


def test_a_client_stays_where_it_is_if_it_may_not_move(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, **CLOSED, authorizationEnabled="true") as calls:
            calls.topic("T")
            access = user(calls, "u", "Group:g Sub", "Topic:T Sub", source="10.0.0.1")
            consumers = calls.broker.state.clients.consumers
            beat = HeartbeatRequest(group=named("g"))
            await known(calls, "c1", consumer("g", "T"), peer="10.0.0.1:1", **access)
            for peer, code in (("10.0.0.2:1", Code.UNAUTHORIZED), ("10.0.0.1:2", Code.OK)):
                found = await calls.ask("Heartbeat", beat, "c1", peer=peer, **access)
                assert found.status.code == code
            assert [each.peer.address for each in consumers["g"]] == ["10.0.0.1:1"]

    simulated.run(run())
