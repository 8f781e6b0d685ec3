"""What a turn of the lane passes on to the ordinary path stays in order with what it serves."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
import struct
import termios
import time
from array import array
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.lane import lane as lane_module
from mqlake.broker.lane import layout
from mqlake.broker.lane.choice import is_chosen
from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.codes import RequestCode
from tests.broker.lane.lanes import lane_of, with_lane
from tests.broker.lane.raw_client import FIELDS, usual
from tests.broker.running import PATIENCE, Running
from tests.broker.send.random_sends import KEY, TOPIC, made
from tests.until import until

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

UNUSUAL = made(0, FIELDS | {"i": KEY + "KEYS\1ü\2"}, b"unusual", 1)
"""Its keys are not ASCII: the lane passes it on."""
BATCH = made(0, FIELDS | {"m": "true"}, encode_batch([(0, b"of a batch", KEY.encode())]), 5)
HOUR = 3_600_000_000_000
SMALL = 4096
"""Bytes of buffers, of which the system takes twice as much: less than all answers to a flood."""


@asynccontextmanager
async def joined(broker: Running, count: int) -> AsyncIterator[list[socket.socket]]:
    """Yield connections that the lane reads, with small buffers for what they receive."""
    loop, (host, port) = asyncio.get_running_loop(), broker.address.split(":")
    made: list[socket.socket] = []
    try:
        for _ in range(count):
            one = socket.socket()
            made.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
            one.connect((host, int(port)))
            one.setblocking(False)
            await loop.sock_sendall(one, usual(0))
            await received(one, 1)
        seats: Any = lane_of(broker)
        await until(lambda: len(seats._seats) == count)
        yield made
    finally:
        for one in made:
            one.close()


async def received(one: socket.socket, count: int) -> bytes:
    """Return so many frames; fail if something else arrives."""
    loop, data, at = asyncio.get_running_loop(), b"", 0
    async with asyncio.timeout(PATIENCE):
        while count:
            while len(data) >= at + 4:
                (size,) = struct.unpack_from(">I", data, at)
                assert size < 1000, f"no frame at {at}: {data[at : at + 40]!r}"
                if len(data) < at + 4 + size:
                    break
                at, count = at + 4 + size, count - 1
            if count:
                more = await loop.sock_recv(one, 1 << 16)
                assert more, "the connection was closed"
                data += more
    assert at == len(data)
    return data


def number_at(broker: Running, one: socket.socket) -> int | None:
    """Return the broker's file descriptor of a connection; None if the lane does not read it."""
    lane: Any = lane_of(broker)
    port = one.getsockname()[1]
    for number, peer in lane._seats._peers.items():
        if peer.address.endswith(f":{port}"):
            return int(number)
    return None


def arrive(broker: Running, one: socket.socket, data: bytes) -> None:
    """Send data, and wait until the lane can receive all of it, if it reads the connection."""
    number, waiting = number_at(broker, one), array("i", [0])
    assert one.send(data) == len(data)
    until = time.monotonic() + PATIENCE
    while number is not None and waiting[0] < len(data):
        assert time.monotonic() < until
        fcntl.ioctl(number, termios.FIONREAD, waiting)


def after_each(broker: Running, then: list[Callable[[], object]]) -> list[int]:
    """Let something happen after what the lane passes on; return the reasons, as they come."""
    lane: Any = lane_of(broker)
    pass_on, reasons = lane._pass_on, list[int]()

    def noted(kernel: Any, peer: Any, reason: int) -> None:
        pass_on(kernel, peer, reason)
        reasons.append(reason)
        if then:
            then.pop(0)()

    lane._pass_on = noted
    return reasons


@pytest.fixture
def long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a turn last until nothing has arrived, however slow the machine is."""
    monkeypatch.setattr(lane_module, "_TURN", HOUR)


@pytest.mark.usefixtures("long_turns")
def test_messages_of_a_connection_are_stored_in_the_order_of_their_sends(tmp_path: Path) -> None:
    async def main() -> None:
        async with with_lane(tmp_path) as (broker, _), joined(broker, 1) as (one,):
            one.send(usual(1))
            await received(one, 1)
            await broker.ask(RequestCode.GET_BROKER_RUNTIME_INFO)  # Another was read last.
            after_each(broker, [lambda: arrive(broker, one, usual(2) + usual(3))])
            one.send(UNUSUAL)
            await received(one, 3)
            bodies = [record.body for record in broker.records(TOPIC, 0)]
            assert bodies[-3:] == [b"unusual", b"2", b"3"]

    asyncio.run(main())


async def fill_with_answers(broker: Running) -> bool:
    """Let one connection get a flood of answers after one that was passed on; return whether the
    lane could send some of them in part only.
    """
    async with joined(broker, 2) as (one, other):
        flood = b"".join(usual(number) for number in range(1000, 1150))

        def fill() -> None:
            if (number := number_at(broker, one)) is not None:
                with closing(socket.socket(fileno=os.dup(number))) as of_broker:
                    of_broker.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * SMALL)
            arrive(broker, one, flood)

        await broker.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        # The batch lets the unusual message be answered in the same turn.
        reasons = after_each(broker, [lambda: arrive(broker, other, BATCH), fill])
        one.send(UNUSUAL)
        await received(other, 1)
        await received(one, 151)
        return layout.UNSENT in reasons


@pytest.mark.usefixtures("long_turns")
def test_a_frame_that_is_sent_in_part_is_continued_before_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with with_lane(tmp_path) as (broker, _):
            # On a busy machine, the connection may have left the lane before.
            for _ in range(50):
                if await fill_with_answers(broker):
                    return
        raise AssertionError("the lane could always send all answers at once")

    asyncio.run(main())


def test_a_topic_under_another_name_is_served_by_the_ordinary_path(tmp_path: Path) -> None:
    async def start() -> None:
        async with with_lane(tmp_path):
            pass

    async def main() -> None:
        async with with_lane(tmp_path) as (broker, calls), joined(broker, 1) as (one,):
            one.send(usual(1, b="Alias"))
            await received(one, 1)
            assert calls.count(layout.NEW_TOPIC) < 10

    asyncio.run(start())
    path = tmp_path / "config" / "topics.json"
    table = json.loads(path.read_text())
    table["topicConfigTable"]["Alias"] = table["topicConfigTable"][TOPIC]
    path.write_text(json.dumps(table))
    asyncio.run(main())
