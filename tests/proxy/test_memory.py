"""Nothing in the service has the name of a client that has left, or of what was deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec.structs import replace

from mqlake.grpc.messages import (
    ClientType,
    Code,
    Endpoints,
    HeartbeatRequest,
    MessageType,
    NotifyClientTerminationRequest,
    QueryAssignmentRequest,
    QueryRouteRequest,
)
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.admin import DeleteGroupHeader, TopicNameHeader
from mqlake.proxy.settings import ProxySettings
from tests import simulated
from tests.broker.admin.asking import done
from tests.broker.endings.memory import mentions
from tests.proxy.clients.of_clients import OpenStream, consumer, known, producer
from tests.proxy.consuming.consumer import GROUP, TOPIC, TestedConsumer, send
from tests.proxy.sending import messages
from tests.proxy.serving import Calls, named, serving

CLIENT, HALVES = "ClientThatEnds", "HalvesThatEnd"
LATER = 400.0
"""Seconds after which clients count as gone, and nothing is invisible any more."""
ADDRESS = "10.9.8.7:6543"


def run(path: Path, test: Callable[[Calls], Awaitable[None]]) -> None:
    async def served() -> None:
        limits = replace(ProxySettings(), channel_expired_timeout=120_000)
        async with serving(path, limits) as calls:
            calls.topic(TOPIC)
            calls.topic(HALVES, "TRANSACTION")
            await test(calls)

    simulated.run(served())


async def use(calls: Calls) -> list[OpenStream]:
    """Let a client produce and consume: a message is received and never acknowledged, a call waits
    and is given up, a transaction stays open.
    """
    kind = ClientType.PUSH_CONSUMER
    streams = [
        await known(calls, CLIENT, producer(TOPIC, HALVES), peer=ADDRESS),
        await known(calls, CLIENT, consumer(GROUP, TOPIC, client_type=kind), peer=ADDRESS),
    ]
    beat = HeartbeatRequest(client_type=kind, group=named(GROUP))
    place = {"topic": named(TOPIC), "endpoints": Endpoints()}
    asked = {
        "Heartbeat": beat,
        "QueryRoute": QueryRouteRequest(**place),
        "QueryAssignment": QueryAssignmentRequest(group=named(GROUP), **place),
        "SendMessage": messages.send(messages.message(TOPIC)),
    }
    for method, request in asked.items():
        answer = await calls.ask(method, request, CLIENT, peer=ADDRESS)
        assert answer.status.code == Code.OK, (method, answer.status.message)
    half = messages.message(HALVES, message_type=MessageType.TRANSACTION)
    await calls.ask("SendMessage", messages.send(half), CLIENT, peer=ADDRESS)
    received = TestedConsumer(calls, CLIENT, is_connected=False, peer=ADDRESS)
    await received.receive()
    await send(calls, "never acknowledged")
    (message,) = await received.receive(auto_renew=True)
    assert message.body == b"never acknowledged"
    waiting = asyncio.create_task(received.responses())
    await asyncio.sleep(1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    return streams


def found(calls: Calls, name: str) -> list[str]:
    """Return where a name is, except among open transactions: those have a limit, and expired ones
    are removed with the next half message.
    """
    roots = calls.service, calls.broker.state, list(calls.methods.values())
    return [path for path in mentions({"": roots}, name) if " OpenTransactions._known" not in path]


def test_a_client_that_has_left(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        streams = await use(calls)
        for name in (CLIENT, ADDRESS):
            assert found(calls, name), f"nothing knows {name}"
        for stream in streams:
            await stream.close()
        termination = NotifyClientTerminationRequest(group=named(GROUP))
        await calls.ask("NotifyClientTermination", termination, CLIENT, peer=ADDRESS)
        await asyncio.sleep(LATER)
        for name in (CLIENT, ADDRESS):
            assert not (left := found(calls, name)), "\n".join(left)

    run(tmp_path, test)


def test_a_client_that_is_gone_without_notice(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        for stream in await use(calls):
            await stream.close()
        await asyncio.sleep(LATER)
        for name in (CLIENT, ADDRESS):
            assert not (left := found(calls, name)), "\n".join(left)

    run(tmp_path, test)


def test_topics_and_groups_that_were_deleted(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        for stream in await use(calls):
            await stream.close()
        for topic in (TOPIC, HALVES):
            header = TopicNameHeader(topic=topic)
            await done(calls.broker, RequestCode.DELETE_TOPIC_IN_BROKER, header)
        group = DeleteGroupHeader(group_name=GROUP, clean_offset=True)
        await done(calls.broker, RequestCode.DELETE_SUBSCRIPTIONGROUP, group)
        await asyncio.sleep(LATER)
        for name in (TOPIC, HALVES, GROUP):
            # What brokers know is tested in tests/broker/endings.
            left = [path for path in found(calls, name) if "roker" not in path]
            assert not left, "\n".join(left)

    run(tmp_path, test)
