"""What one address, and one user, may take of a broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from tests.auth.closed import CLOSED, ROOT
from tests.broker.live.observing import observes, until
from tests.broker.pop import popping
from tests.broker.running import Running
from tests.broker.strangers import from_address
from tests.broker.test_quotas import GREEDY, REFUSED, Client
from tests.broker.test_shared_limits import beat

Connect = Callable[[], Awaitable[Client]]
Look = Callable[[Running, Connect], Awaitable[None]]


def limits(what: str, most: int) -> Callable[[Look], Look]:
    """Register an observation of the limit of an address, and of that of a user.

    Args:
        what: as in the names of the settings.
        most: what the settings are changed to.
    """

    def register(look: Look) -> Look:
        for whose in ("Address", "User"):
            _register(look, f"max{what}Per{whose}", most, is_closed=whose == "User")
        return look

    return register


def _register(look: Look, name: str, most: int, *, is_closed: bool) -> None:
    start: dict[str, Any] = dict(CLOSED) if is_closed else {}

    @observes(name, **start)
    async def observe(broker: Running) -> None:
        root = Client(broker, ROOT if is_closed else None)
        if is_closed:
            body = json.dumps({"password": GREEDY.secret_key}).encode()
            name_of_user = {"username": GREEDY.access_key}
            assert (await root.ask(RequestCode.AUTH_CREATE_USER, name_of_user, body)).code == 0
        changed = f"{name}={most}\n".encode()
        assert (await root.ask(RequestCode.UPDATE_BROKER_CONFIG, None, changed)).code == 0
        async with _connecting(broker, is_closed=is_closed) as connect:
            await look(broker, connect)


@asynccontextmanager
async def _connecting(broker: Running, *, is_closed: bool) -> AsyncGenerator[Connect]:
    async with AsyncExitStack() as undo:

        async def connect() -> Client:
            at = await undo.enter_async_context(from_address(broker, "127.0.0.2"))
            return Client(at, GREEDY if is_closed else None)

        yield connect


@limits("RequestRate", 5)
async def request_rate(_: Running, connect: Connect) -> None:
    client = await connect()
    answers = await asyncio.gather(*(client.send("Known") for _ in range(100)))
    assert any(answer.code == REFUSED for answer in answers)


@limits("ByteRate", 1000)
async def byte_rate(_: Running, connect: Connect) -> None:
    client = await connect()
    assert (await client.send("Known", bytes(1_000_000))).code == ResponseCode.SUCCESS
    assert (await client.send("Known")).code == REFUSED


@limits("InFlight", 1)
async def in_flight(broker: Running, connect: Connect) -> None:
    client = await connect()
    header = popping.header(consumer_group="g", topic="TBW102", poll_time=600_000)
    pop = asyncio.ensure_future(client.ask(RequestCode.POP_MESSAGE, header))
    try:
        await until(lambda: any(peer.in_flight for peer in broker.broker.peers))
        assert (await client.send("Known")).code == REFUSED
    finally:
        await client.at.client.close()
        await asyncio.gather(pop, return_exceptions=True)


@limits("Connections", 1)
async def connections(_: Running, connect: Connect) -> None:
    assert (await (await connect()).send("Known")).code == ResponseCode.SUCCESS
    second, answer = await connect(), None
    with suppress(MqlakeError):  # Whoever has too many connections of an address is cut off.
        answer = await second.send("Known")
    assert answer is None or answer.code == REFUSED


@limits("Topics", 1)
async def topics(_: Running, connect: Connect) -> None:
    client = await connect()
    assert (await client.send("First")).code == ResponseCode.SUCCESS
    assert (await client.send("Second")).code == REFUSED


@limits("Groups", 1)
async def groups(_: Running, connect: Connect) -> None:
    client = await connect()

    async def join(number: int) -> Command:
        return await client.ask(RequestCode.HEART_BEAT, None, beat(number))

    assert (await join(0)).code == ResponseCode.SUCCESS
    assert (await join(1)).code == REFUSED
