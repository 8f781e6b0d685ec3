"""A frame that arrives alone is served at once, with the same checks, limits and counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, Serialization, request, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.frames import encode
from mqlake.remoting import turns
from mqlake.remoting.connection import Peer
from mqlake.remoting.frame_reader import Frames
from mqlake.remoting.limits import Limits
from mqlake.remoting.request_router import RequestRouter
from mqlake.remoting.route import Check, Route
from tests.remoting.serving import Raw
from tests.remoting.test_gate import READ, REFUSED, SEND, Number, echo, numbered, serving
from tests.until import until

KINDS = tuple(Serialization)
ALONE, OTHERWISE = "alone", None


@pytest.fixture(autouse=True)
def long_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no frame wait for the next round of the loop, however slow the machine is."""
    monkeypatch.setattr(turns, "ROUND", 1e9)


def one(peer: Peer, frames: Frames) -> bytes | None:
    """Answer a frame, unless its number is odd."""
    first = frames.first
    number = int(first.fields["number"])
    if number % 2:
        return None
    first.opaque = number
    return encode(response(first, remark=ALONE))


def asked(code: int, number: int, kind: int) -> bytes:
    if kind == Serialization.ROCKETMQ:
        return numbered(code, number)
    command = request(code, {"number": str(number)}, b"x")
    command.opaque = number
    return encode(command)


def answers_to(
    writes: Sequence[tuple[bytes, int]], checks: Sequence[Check] = (), kinds: Any = KINDS
) -> tuple[list[tuple[int, int, str | None]], dict[int, int]]:
    """Write data, each once the answers to the one before it are there; say what is answered."""
    routes = [Route(SEND, echo, run_kinds=kinds, one=one), Route(READ, echo)]

    async def run() -> tuple[list[tuple[int, int, str | None]], dict[int, int]]:
        async with serving(routes, checks) as (server, _, port):
            raw = await Raw.open(port)
            answers: list[Command] = []
            for data, wanted in writes:
                raw.writer.write(data)
                answers += [await raw.command() for _ in range(wanted)]
                await asyncio.sleep(0)
            await raw.close()
            found = [(answer.opaque, answer.code, answer.remark) for answer in answers]
            return found, server.counts

    return asyncio.run(run())


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_is_served_as_ever(kind: int) -> None:
    writes = [(asked(SEND, number, kind), 1) for number in (2, 3, 4)]
    writes.append((asked(READ, 6, kind), 1))
    answers, counts = answers_to(writes)
    assert answers == [(2, 0, ALONE), (3, 0, OTHERWISE), (4, 0, ALONE), (6, 0, OTHERWISE)]
    assert counts == {SEND: 3, READ: 1}


def test_other_serializations_are_served_as_ever() -> None:
    writes = [(asked(SEND, 2, Serialization.JSON), 1), (numbered(SEND, 2), 1)]
    answers, counts = answers_to(writes, kinds=(Serialization.ROCKETMQ,))
    assert answers == [(2, 0, OTHERWISE), (2, 0, ALONE)]
    assert counts == {SEND: 2, READ: 0}


@pytest.mark.parametrize("kind", KINDS)
def test_frames_that_are_not_alone_are_served_as_ever(kind: int) -> None:
    frame = asked(SEND, 2, kind)
    writes = [(frame * 2, 2), (frame[:-1], 0), (frame[-1:] + frame, 2), (frame, 1)]
    answers, counts = answers_to(writes)
    assert answers == [(2, 0, OTHERWISE)] * 4 + [(2, 0, ALONE)]
    assert counts == {SEND: 5, READ: 0}


@pytest.mark.parametrize("kind", KINDS)
def test_checks_that_need_a_header_get_it(kind: int) -> None:
    def no_four(_peer: Peer, asked: Command, _route: Route) -> None:
        if asked.header(Number).number == 4:
            raise RemotingError(REFUSED, "four")

    def no_six(_peer: Peer, asked: Command, _route: Route) -> None:
        if asked.fields.get("number") == "6":
            raise RemotingError(REFUSED, "six")

    for check, remark in ((no_four, "four"), (no_six, "six")):
        number = 4 if remark == "four" else 6
        writes = [(asked(SEND, each, kind), 1) for each in (2, number)]
        answers, counts = answers_to(writes, [check])
        assert answers == [(2, 0, OTHERWISE), (number, REFUSED, remark)]
        assert counts == {SEND: 1, READ: 0}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_check_refuses_by_its_code_is_refused(kind: int) -> None:
    def refuse(_peer: Peer, asked: Command, _route: Route) -> None:
        if asked.code == SEND:
            raise RemotingError(REFUSED, "no")

    answers, counts = answers_to([(asked(SEND, 2, kind), 1)], [refuse])
    assert answers == [(2, REFUSED, "no")]
    assert counts == {SEND: 0, READ: 0}


@pytest.mark.parametrize("busy", ["in_flight", "bodies"])
def test_a_connection_with_too_much_in_flight_is_not_served_so(busy: str) -> None:
    router = RequestRouter([Route(SEND, echo, one=one)], Limits(in_flight=3, bodies=3))
    peer: Any = SimpleNamespace(in_flight=0, bodies=0, usages=())
    assert router.take_one(peer, numbered(SEND, 2)) is not None
    setattr(peer, busy, 4)
    assert router.take_one(peer, numbered(SEND, 2)) is None
    assert router.counts == {SEND: 1}


@pytest.mark.parametrize("data", [b"", b"\0", bytes(8), bytes(40), b"\xff" * 40, b"GET / HTTP/1.0"])
def test_what_is_no_frame_is_left(data: bytes) -> None:
    router = RequestRouter([Route(SEND, echo, run_kinds=KINDS, one=one)], Limits())
    peer: Any = SimpleNamespace(in_flight=0, bodies=0, usages=())
    assert router.take_one(peer, data) is None
    for kind in KINDS:
        frame = asked(SEND, 2, kind)
        assert router.take_one(peer, frame) is not None
        assert not any(router.take_one(peer, frame[:end]) for end in range(len(frame)))
        assert router.take_one(peer, frame + data) is None or not data


def test_one_that_fails_closes_its_connection_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_peer: Peer, _frames: Frames) -> bytes | None:
        raise KeyError("whatever")

    async def run() -> None:
        routes = [Route(SEND, echo, one=broken), Route(READ, echo)]
        async with serving(routes) as (_, _, port):
            first, other = await Raw.open(port), await Raw.open(port)
            first.writer.write(numbered(SEND, 2))
            assert await first.is_closed()
            other.writer.write(numbered(READ, 2))
            assert (await other.command()).code == ResponseCode.SUCCESS
            await first.close()
            await other.close()

    asyncio.run(run())
    assert "serving it failed" in caplog.text


def test_a_client_that_does_not_read_is_read_no_more(caplog: pytest.LogCaptureFixture) -> None:
    size = 1 << 16

    def large(_peer: Peer, frames: Frames) -> bytes | None:
        return encode(response(frames.first, body=bytes(size)))

    async def run() -> None:
        limits = Limits(write_buffer=8 * size)
        async with serving([Route(SEND, echo, one=large)], limits=limits) as (server, _, port):
            raw = await Raw.open(port)
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await until(lambda: server.peers)

            def is_choked() -> bool:
                if not server.peers or any(peer.is_choked for peer in server.peers):
                    return True
                raw.writer.write(numbered(SEND, 2))
                return False

            await until(is_choked)
            held = [(peer.is_choked, peer.held) for peer in server.peers]
            # It is read no more, and what waits for it is counted.
            assert [is_choked for is_choked, _ in held] == [True]
            assert held[0][1] > 0
            await raw.close()

    asyncio.run(run())
    assert "failed" not in caplog.text


def test_a_frame_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a round that is over, it is served with those that wait, and otherwise."""
    monkeypatch.setattr(turns.Turns, "enter_round", lambda _: False)
    answers, counts = answers_to([(numbered(SEND, 2), 1)] * 2)
    assert answers == [(2, 0, OTHERWISE)] * 2
    assert counts == {SEND: 2, READ: 0}
