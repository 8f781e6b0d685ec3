"""Requests that wait for the broker of the own process are passed on together."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from mqlake.protocol.command import Command, request, response
from mqlake.protocol.frames import decode, encode
from mqlake.proxy.brokers.link import BrokerLink
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import RequestTimeoutError


class Inlet:
    """Reads as an inlet does that stops after each data, and answers every request.

    Attributes:
        received: the numbers of the bodies of what arrived together.
    """

    def __init__(self, link: BrokerLink) -> None:
        self._link = link
        self.received: list[list[int]] = []

    def receive(self, data: bytes) -> None:
        """Answer what has arrived, and read nothing more in this round of the loop."""
        asked: list[Command] = []
        while data:
            size = 4 + int.from_bytes(data[:4])
            asked.append(decode(data[:size]))
            data = data[size:]
        self.received.append([int.from_bytes(each.body[:2]) for each in asked])
        self._link.pause_reading()
        asyncio.get_running_loop().call_soon(self._link.resume_reading)
        for each in asked:
            self._link.write(encode(response(each, body=each.body[:2])))


class Broker:
    """The broker's side of a connection."""

    is_closed = False

    def __init__(self, link: BrokerLink) -> None:
        self.inlet = Inlet(link)

    def flush(self) -> None:
        """Do nothing: everything is written."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Do nothing."""


async def nobody(_command: Command, _client_id: str | None) -> Command | None:
    return None


@pytest.mark.parametrize(
    ("size", "runs"), [(100, [[0], [*range(1, 20)]]), (40_000, [[each] for each in range(20)])]
)
def test_requests_that_wait_are_passed_on_together_unless_they_are_long(
    size: int, runs: list[list[int]]
) -> None:
    async def scenario() -> None:
        sides: list[Broker] = []

        def connect(link: asyncio.Transport) -> Peer:
            sides.append(Broker(cast("BrokerLink", link)))
            return cast("Any", sides[0])

        link = BrokerLink(connect, None, "127.0.0.1:1", nobody, lambda _: None)
        asked = [request(310, body=each.to_bytes(2) + bytes(size)) for each in range(20)]
        answers = await asyncio.gather(*(link.request(each, 60) for each in asked))
        assert [int.from_bytes(each.body) for each in answers] == [*range(20)]
        assert sides[0].inlet.received == runs
        link.end()

    asyncio.run(scenario())


def test_requests_for_which_nobody_waits_are_dropped_while_the_broker_rests() -> None:
    """It rests if the client exceeds its quota, which may go on for as long as the client likes."""

    async def scenario() -> None:
        sides: list[Broker] = []

        def connect(link: asyncio.Transport) -> Peer:
            sides.append(Broker(cast("BrokerLink", link)))
            return cast("Any", sides[0])

        link = BrokerLink(connect, None, "127.0.0.1:1", nobody, lambda _: None)
        link.pause_reading()
        asked = [request(310, body=each.to_bytes(2)) for each in range(3)]
        late, lost, last = (asyncio.create_task(link.request(each, 60)) for each in asked)
        await asyncio.sleep(0)
        lost.cancel()
        with pytest.raises(RequestTimeoutError):
            await link.request(request(310, body=(9).to_bytes(2)), 0)
        link.resume_reading()
        assert [(await each).body for each in (late, last)] == [b"\0\0", b"\0\2"]
        assert sides[0].inlet.received == [[0, 2]]
        link.end()

    asyncio.run(scenario())
