"""Limits of one address and of one user: whoever exceeds one is refused, others are served."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.settings import BrokerSettings
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.signature import Credentials, signed
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.remoting.quotas.usage import MOST_REFUSALS
from tests.auth.closed import CLOSED, ROOT
from tests.broker.pop import popping
from tests.broker.running import PATIENCE, Running, running, to
from tests.broker.strangers import from_address
from tests.broker.test_shared_limits import beat
from tests.until import until

GREEDY, OTHER = Credentials("greedy", "password-g"), Credentials("other", "password-o")
REFUSED = ResponseCode.SERVICE_NOT_AVAILABLE
WHOSE = ("Address", "User")


class Client:
    """Sends requests from one address, which a user signs."""

    def __init__(self, at: Running, user: Credentials | None) -> None:
        self.at, self._user = at, user

    async def ask(self, code: int, header: Any = None, body: bytes = b"") -> Command:
        asked = request(code, header, body)
        if self._user is not None:
            asked = signed(asked, self._user)
        return await self.at.client.request(self.at.address, asked, PATIENCE)

    async def send(self, topic: str, body: bytes = b"x") -> Command:
        return await self.ask(RequestCode.SEND_MESSAGE_V2, to(topic), body)


@asynccontextmanager
async def two(
    path: Path, whose: str, **settings: object
) -> AsyncGenerator[tuple[Running, Client, Client, Callable[[], Awaitable[Client]]]]:
    """Yield a broker, a greedy client, another one, and a way to connect the greedy one again.

    With limits of users, both have the same address; otherwise, nobody signs.
    """
    is_closed = whose == "User"
    more: Mapping[str, object] = CLOSED if is_closed else {}
    async with running(path, **more, **settings) as broker, AsyncExitStack() as undo:  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        if is_closed:
            root = Client(broker, ROOT)
            for user in (GREEDY, OTHER):
                body = json.dumps({"password": user.secret_key}).encode()
                name = {"username": user.access_key}
                answer = await root.ask(RequestCode.AUTH_CREATE_USER, name, body)
                assert answer.code == ResponseCode.SUCCESS

        async def connect(host: str, user: Credentials) -> Client:
            at = await undo.enter_async_context(from_address(broker, host))
            return Client(at, user if is_closed else None)

        greedy = await connect("127.0.0.2", GREEDY)
        other = await connect("127.0.0.2" if is_closed else "127.0.0.3", OTHER)
        yield broker, greedy, other, lambda: connect("127.0.0.2", GREEDY)


def is_refused(broker: Running, answer: Command, name: str, reason: str) -> bool:
    owner = "user greedy" if name.endswith("User") else "127.0.0.2"
    remark = answer.remark or ""
    assert broker.state.busy.counts[reason] > 0
    return answer.code == REFUSED and name in remark and owner in remark


async def served_again(client: Client) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await client.send("Known")).code == REFUSED:  # noqa: ASYNC110 (only time passes)
            await asyncio.sleep(0.02)


async def works(other: Client) -> None:
    for _ in range(30):
        assert (await other.send("Known")).code == ResponseCode.SUCCESS


@pytest.mark.parametrize("whose", WHOSE)
def test_requests_in_a_second(tmp_path: Path, whose: str) -> None:
    name = f"maxRequestRatePer{whose}"

    async def run() -> None:
        async with two(tmp_path, whose, **{name: 50}) as (broker, greedy, other, _):
            answers = [await greedy.send("Known")]
            while answers[-1].code == ResponseCode.SUCCESS:
                answers += await asyncio.gather(*(greedy.send("Known") for _ in range(100)))
            refused = [answer for answer in answers if answer.code != ResponseCode.SUCCESS]
            assert all(is_refused(broker, answer, name, "REQUEST_QUOTA") for answer in refused)
            for _ in range(30):
                assert (await other.send("Known")).code == ResponseCode.SUCCESS
            await served_again(greedy)

    asyncio.run(run())


@pytest.mark.parametrize("whose", WHOSE)
def test_refuses_a_flood_slowly_and_serves_others_meanwhile(tmp_path: Path, whose: str) -> None:
    more = 200

    async def run() -> None:
        limit = {f"maxRequestRatePer{whose}": 50}
        async with two(tmp_path, whose, **limit) as (broker, greedy, other, _):
            loop, counts = asyncio.get_running_loop(), broker.state.busy.counts
            assert (await greedy.send("Known")).code == ResponseCode.SUCCESS  # It is connected.
            begin = loop.time()
            flood = asyncio.gather(*(greedy.send("Known") for _ in range(MOST_REFUSALS + more)))
            await works(other)
            codes = {answer.code for answer in await flood}
            assert codes == {ResponseCode.SUCCESS, REFUSED}
            # As many at once, and then about as many in a second.
            late = counts["REQUEST_QUOTA"] - MOST_REFUSALS  # On a slow machine, few are refused.
            assert loop.time() - begin >= late / MOST_REFUSALS / 2
            await served_again(greedy)

    asyncio.run(run())


@pytest.mark.parametrize("whose", WHOSE)
def test_bytes_in_a_second(tmp_path: Path, whose: str) -> None:
    name = f"maxByteRatePer{whose}"

    async def run() -> None:
        async with two(tmp_path, whose, **{name: 100_000}) as (broker, greedy, other, _):
            assert (await greedy.send("Known", bytes(1_000_000))).code == ResponseCode.SUCCESS
            answer = await greedy.send("Known")
            assert is_refused(broker, answer, name, "BYTE_QUOTA")
            await works(other)
            await served_again(greedy)

    asyncio.run(run())


@pytest.mark.parametrize("whose", WHOSE)
def test_requests_that_wait(tmp_path: Path, whose: str) -> None:
    name = f"maxInFlightPer{whose}"

    async def run() -> None:
        async with two(tmp_path, whose, **{name: 5}) as (broker, greedy, other, again):
            second = await again()
            pops: list[asyncio.Future[Command]] = []
            for number in range(5):
                header = popping.header(
                    consumer_group=f"g{number}", topic="TBW102", poll_time=600_000
                )
                client = (greedy, second)[number % 2]
                pops.append(asyncio.ensure_future(client.ask(RequestCode.POP_MESSAGE, header)))
                await until(lambda: waiting(broker) == len(pops))
            for client in (greedy, second):
                answer = await client.send("Known")
                assert is_refused(broker, answer, name, "IN_FLIGHT_QUOTA")
            await works(other)
            for client in (greedy, second):
                await client.at.client.close()
            await asyncio.gather(*pops, return_exceptions=True)
            await until(lambda: waiting(broker) == 0)
            assert (await (await again()).send("Known")).code == ResponseCode.SUCCESS
            assert {usage.in_flight for peer in broker.broker.peers for usage in peer.usages} == {0}

    def waiting(broker: Running) -> int:
        return sum(peer.in_flight for peer in broker.broker.peers)

    asyncio.run(run())


@pytest.mark.parametrize("whose", WHOSE)
def test_connections(tmp_path: Path, whose: str) -> None:
    name = f"maxConnectionsPer{whose}"

    async def run() -> None:
        async with two(tmp_path, whose, **{name: 2}) as (broker, greedy, other, again):
            clients = [greedy, await again()]
            for client in clients:
                assert (await client.send("Known")).code == ResponseCode.SUCCESS
            third = await again()
            if whose == "User":
                assert is_refused(broker, await third.send("Known"), name, "CONNECTION_QUOTA")
            else:
                with pytest.raises(ConnectionFailedError):
                    await third.send("Known")
                assert broker.state.busy.counts["CONNECTION_QUOTA"] == 1
            await works(other)
            await greedy.at.client.close()
            most = 4 if whose == "User" else 3
            await until(lambda: connections(broker) < most)
            await served_again(third)

    def connections(broker: Running) -> int:
        """Return how many connections the two addresses have; in the other case, the users."""
        return len([peer for peer in broker.broker.peers if "127.0.0.1:" not in peer.address])

    asyncio.run(run())


@pytest.mark.parametrize("whose", WHOSE)
def test_topics(tmp_path: Path, whose: str) -> None:
    name = f"maxTopicsPer{whose}"

    async def run() -> None:
        async with two(tmp_path, whose, **{name: 3}) as (broker, greedy, other, _):
            for number in range(3):
                assert (await greedy.send(f"T{number}")).code == ResponseCode.SUCCESS
            answer = await greedy.send("T3")
            assert is_refused(broker, answer, name, "TOPIC_QUOTA")
            assert "T3" not in broker.state.topics
            await works(other)
            assert (await greedy.send("T2")).code == ResponseCode.SUCCESS
            broker.state.topics.remove("T0")
            assert (await greedy.send("T3")).code == ResponseCode.SUCCESS
            assert is_refused(broker, await greedy.send("T4"), name, "TOPIC_QUOTA")

    asyncio.run(run())


@pytest.mark.parametrize("whose", WHOSE)
def test_groups(tmp_path: Path, whose: str) -> None:
    name = f"maxGroupsPer{whose}"

    async def run() -> None:
        async with two(tmp_path, whose, **{name: 3}) as (broker, greedy, other, _):
            for number in range(3):
                answer = await greedy.ask(RequestCode.HEART_BEAT, None, beat(number))
                assert answer.code == ResponseCode.SUCCESS
            answer = await greedy.ask(RequestCode.HEART_BEAT, None, beat(3))
            assert is_refused(broker, answer, name, "GROUP_QUOTA")
            answer = await other.ask(RequestCode.HEART_BEAT, None, beat(7))
            assert answer.code == ResponseCode.SUCCESS
            answer = await greedy.ask(RequestCode.HEART_BEAT, None, beat(2))
            assert answer.code == ResponseCode.SUCCESS

    asyncio.run(run())


def test_limits_change_while_the_broker_runs(tmp_path: Path) -> None:
    async def run() -> None:
        async with two(tmp_path, "Address") as (broker, greedy, other, _):
            assert (await greedy.send("Known")).code == ResponseCode.SUCCESS
            assert not [peer for peer in broker.broker.peers if peer.usages]
            change(broker, max_byte_rate_per_address=1000)
            await greedy.send("Known", bytes(1_000_000))
            assert (await greedy.send("Known")).code == REFUSED
            change(broker, max_byte_rate_per_address=0)
            assert (await greedy.send("Known")).code == ResponseCode.SUCCESS
            assert not [peer for peer in broker.broker.peers if peer.usages]
            await works(other)

    def change(broker: Running, **values: int) -> None:
        live = broker.runtime.live
        live.replace(msgspec.structs.replace(live.now, **values))

    asyncio.run(run())


def test_a_name_that_nobody_has_proved_counts_to_nobody(tmp_path: Path) -> None:
    async def run() -> None:
        async with two(tmp_path, "User", maxRequestRatePerUser=5) as (_, greedy, other, _again):
            forged = Client(greedy.at, Credentials("other", "wrong"))
            for _ in range(50):
                answer = await forged.send("Known")
                assert answer.remark == "check signature failed."
            for _ in range(5):
                assert (await other.send("Known")).code == ResponseCode.SUCCESS

    asyncio.run(run())


def test_a_request_that_nobody_signed_counts_to_no_user(tmp_path: Path) -> None:
    async def run() -> None:
        settings: dict[str, object] = {"maxTopicsPerUser": 1, "maxConnectionsPerUser": 1}
        settings["authenticationWhitelist"] = str(int(RequestCode.SEND_MESSAGE_V2))
        async with two(tmp_path, "User", **settings) as (broker, greedy, other, again):
            assert (await greedy.send("Greedy")).code == ResponseCode.SUCCESS
            nobody = Client(greedy.at, None)
            assert (await nobody.send("Nobody")).code == ResponseCode.SUCCESS
            # The connection over which a signed request came last counts, and only that one.
            assert (await (await again()).send("Greedy")).code == ResponseCode.SUCCESS
            answer = await greedy.send("Greedy")
            assert is_refused(broker, answer, "maxConnectionsPerUser", "CONNECTION_QUOTA")
            assert (await nobody.send("Nobody")).code == ResponseCode.SUCCESS
            await works(other)

    asyncio.run(run())


def test_limits_of_users_have_no_effect_without_users(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, maxRequestRatePerUser=1, maxTopicsPerUser=1) as broker:
            client = Client(broker, GREEDY)
            for number in range(5):
                assert (await client.send(f"T{number}")).code == ResponseCode.SUCCESS

    asyncio.run(run())


def test_there_are_no_limits_by_default() -> None:
    names = [name for name in BrokerSettings.__annotations__ if "_per_" in name]
    limits = [name for name in names if name.endswith(("_address", "_user"))]
    assert len(limits) == 12
    found = msgspec.structs.asdict(BrokerSettings())
    assert {found[name] for name in limits} == {0}


CONNECTIONS, PIPELINED = 4, 32
FLOODS: dict[str, tuple[int, str]] = {
    "maxRequestRatePerUser": (50, "REQUEST_QUOTA"),
    "maxByteRatePerUser": (50_000, "BYTE_QUOTA"),
    "maxInFlightPerUser": (5, "IN_FLIGHT_QUOTA"),
    "maxConnectionsPerUser": (2, "CONNECTION_QUOTA"),
    "maxTopicsPerUser": (1, "TOPIC_QUOTA"),
    "maxGroupsPerUser": (1, "GROUP_QUOTA"),
}
"""A limit of each kind, and the reason of a refusal."""


async def greedy_request(client: Client, limit: str, number: int) -> None:
    """Make a request that exceeds a limit if others like it are made at the same time."""
    if limit == "maxGroupsPerUser":
        await client.ask(RequestCode.HEART_BEAT, None, beat(number))
    elif limit == "maxTopicsPerUser":
        await client.send(f"T{number}")
    else:
        await client.send("Known", bytes(2000))


@pytest.mark.parametrize("limit", FLOODS)
def test_a_user_is_served_in_turn_while_another_one_floods(tmp_path: Path, limit: str) -> None:
    """However many requests of the greedy user wait, few are answered before one of the other."""
    most, reason = FLOODS[limit]
    answered, is_over = 0, False

    async def flood(client: Client, lane: int) -> None:
        nonlocal answered
        number = lane
        while not is_over:
            await greedy_request(client, limit, number)
            answered += 1
            number += CONNECTIONS * PIPELINED

    async def run() -> list[int]:
        nonlocal is_over
        async with two(tmp_path, "User", **{limit: most}) as (broker, greedy, other, again):
            clients = [greedy, *[await again() for _ in range(CONNECTIONS - 1)]]
            floods = [
                asyncio.ensure_future(flood(clients[lane % CONNECTIONS], lane))
                for lane in range(CONNECTIONS * PIPELINED)
            ]
            await until(lambda: broker.state.busy.counts[reason] > 0)
            between: list[int] = []
            for _ in range(40):  # Fewer than the other user may make in a second, however fast.
                before = answered
                assert (await other.send("Known")).code == ResponseCode.SUCCESS
                between.append(answered - before)
            refused = broker.state.busy.counts[reason]
            is_over = True
            await asyncio.gather(*floods)
            assert refused > 0
            return between

    between = sorted(asyncio.run(run()))
    # All that wait are answered once in each of the rounds of the loop in which the other request
    # is sent, read, answered and received.
    assert between[-1] <= 4 * CONNECTIONS * PIPELINED
