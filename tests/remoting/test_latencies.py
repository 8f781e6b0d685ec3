"""How long requests took: each request is counted once, under what became of it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, oneway, request, response
from mqlake.protocol.errors import RemotingError
from mqlake.remoting import latencies as module
from mqlake.remoting.connection import Peer
from mqlake.remoting.latencies import ONEWAY, UNWRITTEN, Latencies, RequestKind, Started
from mqlake.remoting.limits import Limits
from mqlake.remoting.route import Answer
from tests.remoting.serving import Served, serving
from tests.until import until

SEND, PULL, HEARTBEAT = (
    int(code)
    for code in (RequestCode.SEND_MESSAGE, RequestCode.PULL_MESSAGE, RequestCode.HEART_BEAT)
)
NO_PERMISSION = int(ResponseCode.NO_PERMISSION)


class Clock:
    """The time of `perf_counter` in the module, which only the test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for name in ("latencies", "request_router"):
            monkeypatch.setattr(f"mqlake.remoting.{name}.perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def started_of(served: Served) -> list[object]:
    """Return the requests that the server's connections wait for."""
    found = (peer.started for peer in served.server.peers)
    return [each for started in found if started for each in started]


def counts(found: Latencies) -> dict[RequestKind, int]:
    return {kind: times.count for kind, times in found.all().items()}


def test_each_request_is_counted_under_its_answer(clock: Clock) -> None:
    found = Latencies()

    def at_once(peer: Peer, request: Command) -> Answer:
        clock.now += 0.002
        return response(request)

    async def refused(peer: Peer, request: Command) -> Answer:
        await asyncio.sleep(0)
        clock.now += 0.5
        raise RemotingError(NO_PERMISSION, "no")

    def waits(peer: Peer, request: Command) -> None:
        peer.suspend(request)

        def answer() -> None:
            clock.now += 30
            peer.answer(request, response(request, ResponseCode.PULL_NOT_FOUND))

        asyncio.get_running_loop().call_soon(answer)

    async def run() -> None:
        handlers = {SEND: at_once, HEARTBEAT: refused, PULL: waits}
        async with serving(handlers, latencies=found) as served:
            for code in (SEND, SEND, HEARTBEAT, PULL):
                await served.ask(request(code))
            await served.client.oneway(served.address, oneway(SEND))
            await until(lambda: RequestKind(SEND, result=ONEWAY) in found.all())
            assert not started_of(served)

    asyncio.run(run())
    assert counts(found) == {
        RequestKind(SEND): 2,
        RequestKind(SEND, result=ONEWAY): 1,
        RequestKind(HEARTBEAT, NO_PERMISSION): 1,
        RequestKind(PULL, ResponseCode.PULL_NOT_FOUND, was_suspended=True): 1,
    }
    assert found.of(RequestKind(SEND)).total == pytest.approx(4)
    assert found.of(RequestKind(HEARTBEAT, NO_PERMISSION)).total == pytest.approx(500)


def test_an_answer_that_finds_no_connection_is_counted_as_that(clock: Clock) -> None:
    found, asked = Latencies(), list[tuple[Peer, Command]]()

    def keeps(peer: Peer, request: Command) -> None:
        asked.append((peer, request))

    async def run() -> None:
        async with serving({SEND: keeps}, latencies=found) as served:
            asking = asyncio.create_task(served.ask(request(SEND)))
            await until(lambda: bool(asked))
            peer, command = asked[0]
            peer.close()
            await asyncio.gather(asking, return_exceptions=True)
            peer.answer(command, response(command))

    asyncio.run(run())
    assert counts(found) == {RequestKind(SEND, result=UNWRITTEN): 1}


def test_refusals_and_unknown_codes_have_no_latency() -> None:
    """Whatever codes a client invents, they make no samples."""
    found = Latencies()

    async def run() -> None:
        async with serving({SEND: lambda *_: None}, Limits(in_flight=0), latencies=found) as served:
            answer = await served.ask(request(SEND))
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert served.server.refused == 1
            assert not started_of(served)
        async with serving({SEND: lambda *_: None}, latencies=found) as served:
            answer = await served.ask(request(12_345))
            assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            assert not started_of(served)

    asyncio.run(run())
    assert not found.all()


async def _slow(served: Served, clock: Clock, milliseconds: int) -> None:
    fields = {"topic": "Orders", "wait": str(milliseconds)}
    await served.ask(request(SEND, fields))


def test_slow_requests_are_logged_and_those_that_wait_for_messages_are_not(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    found = Latencies(slow=100)

    def takes(peer: Peer, request: Command) -> Answer:
        clock.now += int(request.fields["wait"]) / 1000
        return response(request)

    def waits(peer: Peer, request: Command) -> None:
        clock.now += 10
        peer.suspend(request)
        peer.answer(request, response(request))

    async def run() -> str:
        async with serving({SEND: takes, PULL: waits}, latencies=found) as served:
            await served.ask(request(PULL))
            for milliseconds in (99, 101, 2000):
                await _slow(served, clock, milliseconds)
            return served.address

    caplog.set_level(logging.WARNING, "mqlake.remoting")
    asyncio.run(run())
    assert found.slow_requests.total() == 2
    lines = [record.getMessage() for record in caplog.records if "slow" in record.getMessage()]
    assert [line.partition("send_message: ")[2] for line in lines] == [
        "101 ms until success",
        "2000 ms until success",
    ]


def test_the_log_has_a_maximum_of_slow_requests(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    found = Latencies(slow=1)
    caplog.set_level(logging.WARNING, "mqlake.remoting")
    for _ in range(50):
        found.add(RequestKind(SEND), 1.0, 1, "10.0.0.1:1")
    assert len(caplog.records) == module._MOST  # pyright: ignore[reportPrivateUsage]
    clock.now += 11
    found.add(RequestKind(SEND), 1.0, 1, "10.0.0.1:1")
    assert "30 more requests were slow" in caplog.text
    assert found.slow_requests.total() == 51


def test_a_slow_request_says_what_it_named(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    from mqlake.protocol.headers.send import SendMessageHeader
    from tests.broker.running import to

    header = to("Orders")
    command, started = Command(SEND, opaque=7), Started()
    command.raw_fields = SendMessageHeader(  # pyright: ignore[reportAttributeAccessIssue]
        **{name: getattr(header, name) for name in SendMessageHeader.__struct_fields__}
    )
    started[7] = clock.now
    clock.now += 1
    caplog.set_level(logging.WARNING, "mqlake.remoting")
    Latencies(slow=1).answered(command, 0, "success", started, "10.0.0.1:1")
    named = "topic Orders, producer_group producers"
    assert caplog.messages == [f"slow: 10.0.0.1:1 send_message: 1000 ms until success, {named}"]


def test_of_two_requests_with_one_opaque_the_first_answer_counts(clock: Clock) -> None:
    found, started = Latencies(), Started()
    for _ in range(2):
        started[7] = clock.now
    for _ in range(2):
        found.answered(Command(SEND, opaque=7), 0, "success", started, "10.0.0.1:1")
    assert counts(found) == {RequestKind(SEND): 1}
