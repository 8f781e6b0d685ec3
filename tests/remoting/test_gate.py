"""Every request and every run passes the same checks and limits, and is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from mqlake.protocol import binary_header
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, Serialization, request, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.frames import encode
from mqlake.protocol.header import Header, Int32
from mqlake.protocol.permission import Permission
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.connection import Peer
from mqlake.remoting.limits import Limits
from mqlake.remoting.request_router import RequestRouter
from mqlake.remoting.route import Check, Route
from mqlake.remoting.server import RemotingServer
from mqlake.remoting.stream.frame_reader import FrameReader, Frames
from tests.remoting.serving import PATIENCE, Raw

SEND, READ = RequestCode.SEND_MESSAGE, RequestCode.QUERY_MESSAGE
REFUSED = ResponseCode.NO_PERMISSION


class Number(Header):
    number: Int32


def echo(_: Peer, asked: Command) -> Command:
    return response(asked, body=asked.body)


def numbered(code: int, opaque: int, **more: str) -> bytes:
    asked = request(code, {"number": str(opaque), **more}, b"x")
    asked.opaque, asked.serialization = opaque, Serialization.ROCKETMQ
    return encode(asked)


class Runs:
    """Takes all frames of a run that are whole, as many at a time as it is told."""

    def __init__(self, most: int = 100) -> None:
        self.most, self.taken = most, list[list[int]]()

    def take(self, peer: Peer, frames: Frames) -> int:
        commands = FrameReader(Limits()).feed(frames.data[frames.at :])
        run = [one for one, _ in zip(commands, range(self.most), strict=False)]
        assert all(isinstance(one, Command) for one in run)
        run = [one for one in run if isinstance(one, Command)]
        frames.at += len(numbered(SEND, 1)) * len(run)
        self.taken.append([one.opaque for one in run])
        for one in run:
            peer.send(response(one, remark="of a run"))
        return len(run)


@asynccontextmanager
async def serving(
    routes: Sequence[Route], checks: Sequence[Check] = (), limits: Limits | None = None
) -> AsyncIterator[tuple[RemotingServer, str, int]]:
    server = RemotingServer(routes, limits, checks)
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, f"127.0.0.1:{port}", port
    finally:
        await server.stop()


def only_readers(_: Peer, asked: Command, route: Route) -> None:
    if route.permission is None or Permission.READ not in route.permission:
        raise RemotingError(REFUSED, f"{asked.fields.get('AccessKey')} may only read")


@pytest.mark.parametrize("kind", Serialization)
@pytest.mark.parametrize("typed", [None, Number])
def test_what_a_check_refuses_reaches_no_handler(
    kind: Serialization, typed: type[Header] | None
) -> None:
    """It sees all fields that came, also those that the request's type does not know."""
    routes = [
        Route(SEND, echo, Permission.PUBLISH, typed),
        Route(READ, echo, Permission.SUBSCRIBE | Permission.READ, typed),
    ]

    async def run() -> None:
        async with serving(routes, [only_readers]) as (server, address, _):
            client = RemotingClient(connect_timeout=PATIENCE)
            answers: list[Command] = []
            for code in (SEND, READ):
                asked = request(code, {"number": "1", "AccessKey": "me"}, b"body")
                asked.serialization = kind
                answers.append(await client.request(address, asked, PATIENCE))
            assert [answer.code for answer in answers] == [REFUSED, ResponseCode.SUCCESS]
            assert answers[0].remark == "me may only read"
            assert server.counts == {SEND: 0, READ: 1}
            await client.close()

    asyncio.run(run())


def test_a_check_that_fails_refuses(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_peer: Peer, _asked: Command, _route: Route) -> None:
        raise KeyError("whatever")

    async def run() -> None:
        async with serving([Route(READ, echo)], [broken]) as (server, address, _):
            client = RemotingClient(connect_timeout=PATIENCE)
            answer = await client.request(address, request(READ), PATIENCE)
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert server.counts == {READ: 0}
            await client.close()

    asyncio.run(run())
    assert "request 12 failed" in caplog.text


def answers_to(
    stream: bytes, wanted: int, routes: Sequence[Route], checks: Sequence[Check] = ()
) -> tuple[list[Command], dict[int, int]]:
    """Write a stream at once; return its answers, and what the server has counted."""

    async def run() -> tuple[list[Command], dict[int, int]]:
        async with serving(routes, checks) as (server, _, port):
            raw = await Raw.open(port)
            raw.writer.write(stream)
            answers = [await raw.command() for _ in range(wanted)]
            await raw.close()
            return answers, server.counts

    return asyncio.run(run())


def test_a_check_that_fails_of_a_run_refuses_its_frames_one_by_one() -> None:
    def broken(_peer: Peer, _asked: Command, _route: Route) -> None:
        raise KeyError("whatever")

    runs = Runs()
    stream = b"".join(numbered(SEND, opaque) for opaque in range(1, 4))
    routes = [Route(SEND, echo, Permission.PUBLISH, None, runs.take)]
    answers, counts = answers_to(stream, 3, routes, [broken])
    assert [answer.code for answer in answers] == [ResponseCode.SYSTEM_ERROR] * 3
    assert (runs.taken, counts) == ([], {SEND: 0})


def test_a_run_that_fails_closes_its_connection_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def take(_peer: Peer, _frames: Frames) -> int:
        raise KeyError("whatever")

    async def run() -> None:
        routes = [Route(SEND, echo, None, None, take), Route(READ, echo)]
        async with serving(routes) as (_, address, port):
            client, raw = RemotingClient(connect_timeout=PATIENCE), await Raw.open(port)
            assert (
                await client.request(address, request(READ), PATIENCE)
            ).code == ResponseCode.SUCCESS
            raw.writer.write(numbered(SEND, 1))
            assert await raw.is_closed()
            assert (
                await client.request(address, request(READ), PATIENCE)
            ).code == ResponseCode.SUCCESS
            await raw.close()
            await client.close()

    asyncio.run(run())
    assert "serving it failed" in caplog.text


def test_a_run_is_checked_once_and_counted_whole() -> None:
    seen: list[int] = []

    def note(_peer: Peer, asked: Command, route: Route) -> None:
        assert (route.code, asked.body) == (SEND, b"")
        seen.append(asked.opaque)

    runs = Runs(most=7)
    stream = b"".join(numbered(SEND, opaque) for opaque in range(1, 15))
    routes = [Route(SEND, echo, Permission.PUBLISH, None, runs.take)]
    answers, counts = answers_to(stream, 14, routes, [note])
    assert [answer.remark for answer in answers] == ["of a run"] * 14
    assert runs.taken == [list(range(1, 8)), list(range(8, 15))]
    assert seen == [1, 8]
    assert counts == {SEND: 14}


def test_a_run_that_is_refused_is_refused_frame_by_frame() -> None:
    runs = Runs()
    stream = b"".join(numbered(SEND, opaque) for opaque in range(1, 15))
    routes = [Route(SEND, echo, Permission.PUBLISH, None, runs.take)]
    answers, counts = answers_to(stream, 14, routes, [only_readers])
    assert [answer.code for answer in answers] == [REFUSED] * 14
    assert [answer.opaque for answer in answers] == list(range(1, 15))
    assert (runs.taken, counts) == ([], {SEND: 0})


def test_a_frame_that_no_run_takes_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded, decode = list[bytes](), binary_header.decode

    def counted(data: bytes) -> Command:
        decoded.append(data)
        return decode(data)

    def look(_peer: Peer, asked: Command, _route: Route) -> None:
        assert (asked.code, asked.opaque) == (SEND, 7)

    monkeypatch.setattr(binary_header, "decode", counted)
    routes = [Route(SEND, echo, None, None, lambda _peer, _frames: 0)]
    reader = FrameReader(Limits(), runs=[(Serialization.ROCKETMQ, SEND)])
    router = RequestRouter(routes, Limits(), [look])
    peer: Any = SimpleNamespace(in_flight=0, bodies=0, usages=())
    for found in reader.feed(numbered(SEND, 7)):
        if isinstance(found, Frames):
            router.take_run(peer, found)
        else:
            assert (found.opaque, found.body) == (7, b"x")
    assert len(decoded) == 1


def test_a_run_of_json_passes_the_same_checks() -> None:
    """They see the fields of its first frame, which are decoded when they ask."""
    asked = request(SEND, {"number": "1", "AccessKey": "me"})
    stream, seen = encode(asked), list[Command]()

    def take(peer: Peer, frames: Frames) -> int:
        seen.append(frames.first)
        peer.send(response(asked, remark="of a run"))
        frames.at += len(stream)
        return 1

    both = tuple(Serialization)
    for kinds, remark in ((both, "me may only read"), ((Serialization.ROCKETMQ,), None)):
        routes = [Route(SEND, echo, Permission.PUBLISH, None, take, kinds)]
        answers, counts = answers_to(stream * 2, 2, routes, [only_readers])
        assert [answer.code for answer in answers] == [REFUSED] * 2
        assert (counts, seen) == ({SEND: 0}, [])
        answers, counts = answers_to(stream * 2, 2, routes)
        assert [answer.remark for answer in answers] == [remark and "of a run"] * 2
        assert counts == {SEND: 2}
        assert [first.fields for first in seen] == [asked.fields] * (2 if remark else 0)
        seen.clear()


@pytest.mark.parametrize("busy", ["in_flight", "bodies"])
def test_a_connection_with_too_much_in_flight_gets_no_run(busy: str) -> None:
    runs, limits = Runs(), Limits(in_flight=3, bodies=3)
    router = RequestRouter([Route(SEND, echo, None, None, runs.take)], limits)
    data = numbered(SEND, 1)

    class Busy:
        in_flight, bodies, usages = 0, 0, ()

    peer = Busy()
    setattr(peer, busy, 4)
    router.take_run(peer, Frames(data, 0, SEND))  # type: ignore[arg-type]
    assert runs.taken == []
