"""Connections with TLS join the lane, and lose nothing."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.lane.choice import is_chosen
from mqlake.broker.lane.seats import Decryption
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.frames import encode
from mqlake.remoting.tls import layer
from tests.broker.lane.lanes import lane_of, served, with_lane
from tests.broker.lane.raw_client import FIELDS, KINDS, RawClient, usual
from tests.broker.running import PATIENCE, Running
from tests.broker.send.random_sends import TOPIC, made
from tests.remoting.serving import Raw
from tests.remoting.tls.raw_client import RawTls
from tests.tls.certificates import Authority
from tests.until import until

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")


class TlsClient(RawTls):
    """A connection with TLS to a broker, whose encrypted bytes are sent in parts."""

    def __init__(self, raw: Raw, context: ssl.SSLContext) -> None:
        super().__init__(raw, context)
        self.context = context

    def write(self, data: bytes) -> None:
        """Send data, without waiting."""
        self.tls.write(data)
        self.raw.writer.write(self.outgoing.read())

    async def ask(self, *frames: bytes, part: int = 1 << 20) -> list[Command]:
        """Return the answers to frames that are encrypted together."""
        self.tls.write(b"".join(frames))
        data = self.outgoing.read()
        for at in range(0, len(data), part):
            await self.send(data[at : at + part])
            await asyncio.sleep(0)
        return await self.answers(len(frames))

    async def answers(self, count: int) -> list[Command]:
        """Return the next answers, so many of them."""
        found: list[Command] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                with suppress(ssl.SSLWantReadError):
                    data = self.tls.read(1 << 16)
                    found += [one for one in self._frames.feed(data) if isinstance(one, Command)]
                    continue
                self.incoming.write(await self.raw.reader.read(1 << 16))
        return found


@asynccontextmanager
async def encrypted(
    path: Path, **settings: object
) -> AsyncGenerator[tuple[Running, list[int], TlsClient]]:
    """Run a broker whose lane reads a connection with TLS; yield it, as `with_lane` does, and the
    connection, over which one message was sent.
    """
    authority = Authority(path)
    given = authority.settings() | {"tls.server.mode": "permissive", "tls.enable": False}
    async with with_lane(path / "broker", None, **(given | settings)) as (broker, calls):
        client = await joined(broker, ssl.create_default_context(cafile=authority.ca))
        try:
            yield broker, calls, client
        finally:
            client.raw.writer.close()


async def joined(broker: Running, context: ssl.SSLContext) -> TlsClient:
    before, (host, _, port) = seats(broker), broker.address.rpartition(":")
    raw = Raw(*await asyncio.open_connection(host, int(port)))
    client = TlsClient(raw, context)
    await client.shake_hands()
    await client.ask(usual(0))
    await until(lambda: seats(broker) == before + 1)
    return client


def seats(broker: Running) -> int:
    """Return how many connections the lane reads."""
    lane: Any = lane_of(broker)
    return len(lane._seats)


def bodies(broker: Running) -> list[bytes]:
    """Return the bodies of the messages of the first queue, but for the first two."""
    return [record.body for record in broker.records(TOPIC)][2:]


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_come_in_the_order_of_the_sends(tmp_path: Path, kind: int, flush: str) -> None:
    async def run() -> None:
        async with encrypted(tmp_path, flushDiskType=flush) as (broker, calls, client):
            for burst in (1, 3, 200, 1):
                found = await client.ask(*(usual(number, kind) for number in range(burst)))
                assert [answer.opaque for answer in found] == list(range(burst))
                assert {answer.code for answer in found} == {ResponseCode.SUCCESS}
            assert served(calls) > 200
            assert seats(broker) == 1
            expected = [number for burst in (1, 3, 200, 1) for number in range(burst)]
            assert bodies(broker) == [b"%d" % number for number in expected]

    asyncio.run(run())


@pytest.mark.parametrize("part", [1, 7, 300, 5_000])
def test_records_may_arrive_in_parts(tmp_path: Path, part: int) -> None:
    count = 20 if part < 300 else 400

    async def run() -> None:
        async with encrypted(tmp_path) as (broker, calls, client):
            found = await client.ask(*(usual(number) for number in range(count)), part=part)
            assert [answer.opaque for answer in found] == list(range(count))
            assert bodies(broker) == [b"%d" % number for number in range(count)]
            assert served(calls) > 0

    asyncio.run(run())


def test_frames_may_be_split_over_records(tmp_path: Path) -> None:
    dice = random.Random(5)

    async def run() -> None:
        async with encrypted(tmp_path) as (broker, calls, client):
            stream = b"".join(usual(number) for number in range(300))
            at = 0
            while at < len(stream):
                size = dice.choice((1, 5, 100, 1_000, 20_000))
                client.tls.write(stream[at : at + size])
                at += size
                if dice.random() < 0.5:
                    await client.send(client.outgoing.read())
                    await asyncio.sleep(0)
            await client.send(client.outgoing.read())
            found = await client.answers(300)
            assert [answer.opaque for answer in found] == list(range(300))
            assert bodies(broker) == [b"%d" % number for number in range(300)]
            assert served(calls) > 0

    asyncio.run(run())


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_connections_of_both_kinds_get_their_own_answers(tmp_path: Path, flush: str) -> None:
    """One call of the kernel serves all of them; only some answers are encrypted by its caller."""
    dice = random.Random(3)

    async def run() -> None:
        async with encrypted(tmp_path, flushDiskType=flush) as (broker, calls, client):
            clients: list[TlsClient | RawClient] = [client]
            for _ in range(4):
                clients.append(await joined(broker, client.context))
                clients.append(plain := await RawClient.connect(broker))
                await plain.ask(usual(0))
            await until(lambda: seats(broker) == len(clients))
            before = served(calls)
            for turn in range(30):
                dice.shuffle(clients)
                sent: list[list[int]] = []
                for place, one in enumerate(clients):
                    first = 100_000 * turn + 1000 * place
                    sent.append([*range(first, first + dice.choice((1, 2, 40)))])
                    one.write(b"".join(map(usual, sent[-1])))
                for one, expected in zip(clients, sent, strict=True):
                    found = await one.answers(len(expected))
                    assert [answer.opaque for answer in found] == expected
            assert served(calls) > before
            assert seats(broker) == len(clients)
            for one in clients:  # Nothing is left of another one's answers.
                (answer,) = await one.ask(usual(7))
                assert answer.opaque == 7
            for one in clients:
                if isinstance(one, TlsClient):
                    one.raw.writer.close()

    asyncio.run(run())


def test_a_receipt_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it choked the connection, that would leave the lane, which is about to take the data."""
    receive, flush = layer.TlsLayer.receive_into, layer.TlsLayer._flush
    receiving, left, wrote = [False], list[int](), list[bool]()

    def noted_receive(self: Any, buffer: memoryview) -> Any:
        receiving[0] = True
        try:
            return receive(self, buffer)
        finally:
            receiving[0] = False
            left.append(self._outgoing.pending)

    def noted_flush(self: Any) -> None:
        wrote.append(receiving[0])
        flush(self)

    monkeypatch.setattr(layer.TlsLayer, "receive_into", noted_receive)
    monkeypatch.setattr(layer.TlsLayer, "_flush", noted_flush)

    async def run() -> None:
        async with encrypted(tmp_path) as (broker, _, client):
            peers = len(broker.broker.peers)
            client.tls.write(usual(1))
            damaged = bytearray(client.outgoing.read())
            damaged[-1] ^= 1
            await client.send(bytes(damaged))
            await until(lambda: len(broker.broker.peers) == peers - 1)
            assert any(left)  # An alert.
            assert not any(wrote)

    asyncio.run(run())


def test_pulls_are_noted_if_a_decryption_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with encrypted(tmp_path) as (broker, _, _client):
            lane: Any = lane_of(broker)
            noted: list[bool] = []
            monkeypatch.setattr(lane._decryption, "serve", lambda *_: 1 // 0)
            monkeypatch.setattr(lane._pulls, "note", lambda: noted.append(True))
            lane._turn()
            assert noted == [True]

    asyncio.run(run())


def test_long_frames_are_served(tmp_path: Path) -> None:
    """The kernel's buffer may have too little room for the next record."""
    sizes = [61_000, 10, 45_000, 63_000, 70_000, 200_000, 20, 48_000]

    async def run() -> None:
        async with encrypted(tmp_path) as (broker, _, client):
            for _ in range(3):
                frames = [made(0, FIELDS, bytes(size), at) for at, size in enumerate(sizes)]
                found = await client.ask(*frames, part=11_000)
                assert [answer.opaque for answer in found] == list(range(len(sizes)))
                assert {answer.code for answer in found} == {ResponseCode.SUCCESS}
            assert [len(body) for body in bodies(broker)] == sizes * 3

    asyncio.run(run())


def test_other_requests_keep_their_place(tmp_path: Path) -> None:
    async def run() -> None:
        async with encrypted(tmp_path) as (broker, _, client):
            ask = request(RequestCode.GET_BROKER_RUNTIME_INFO)
            ask.opaque = 7
            for _ in range(20):
                found = await client.ask(usual(1), encode(ask), usual(2))
                assert sorted(answer.opaque for answer in found) == [1, 2, 7]
            assert bodies(broker) == [b"1", b"2"] * 20

    asyncio.run(run())


@pytest.mark.parametrize("is_damaged", [False, True], ids=["cut off", "damaged"])
def test_what_is_answered_survives_the_end_in_a_record(tmp_path: Path, is_damaged: bool) -> None:
    async def run() -> None:
        async with encrypted(tmp_path) as (broker, _, client):
            answered = await client.ask(*(usual(number) for number in range(50)))
            client.tls.write(b"".join(usual(number) for number in range(50, 60)))
            data = bytearray(client.outgoing.read())
            client.tls.write(b"".join(usual(number) for number in range(60, 70)))
            damaged = bytearray(client.outgoing.read())
            damaged[-1] ^= is_damaged
            peers = len(broker.broker.peers)
            await client.send(bytes(data + (damaged if is_damaged else damaged[:-1])))
            if not is_damaged:
                answered += await client.answers(10)
                client.raw.writer.close()
            await until(lambda: len(broker.broker.peers) == peers - 1)
            assert seats(broker) == 0
            assert bodies(broker) == [b"%d" % number for number in range(60)]
            assert {answer.code for answer in answered} == {ResponseCode.SUCCESS}

    asyncio.run(run())


def test_the_end_of_the_other_side_closes_the_connection(tmp_path: Path) -> None:
    async def run() -> None:
        async with encrypted(tmp_path) as (broker, _, client):
            peers = len(broker.broker.peers)
            client.tls.write(usual(1))
            with pytest.raises(ssl.SSLWantReadError):
                client.tls.unwrap()
            await client.send(client.outgoing.read())
            await until(lambda: len(broker.broker.peers) == peers - 1)
            assert seats(broker) == 0
            assert bodies(broker) == [b"1"]

    asyncio.run(run())


def test_a_client_that_does_not_read_is_read_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer, "_WRITE", 1 << 12)

    async def run() -> None:
        async with encrypted(tmp_path, mappedFileSizeCommitLog=64 << 20) as (broker, _, client):
            frames = b"".join(usual(number) for number in range(200))

            def is_choked() -> bool:
                return any(peer.is_choked for peer in broker.broker.peers)

            count = 0
            while not is_choked():
                end = broker.state.store.watermarks.end
                client.tls.write(frames)
                client.raw.writer.write(client.outgoing.read())
                count += 200
                while broker.state.store.watermarks.end == end and not is_choked():  # noqa: ASYNC110
                    await asyncio.sleep(0)
            found = await client.answers(count)
            assert [answer.opaque for answer in found] == list(range(200)) * (count // 200)
            assert len(bodies(broker)) == count

    asyncio.run(run())


def test_a_decryption_that_fails_stops_the_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was put before is noted and answered."""
    usual_receive, left = Decryption.receive, [3]

    def receive(*arguments: Any) -> bool:
        left[0] -= 1
        if not left[0]:
            raise ValueError("broken")
        return usual_receive(*arguments)

    async def run() -> None:
        async with encrypted(tmp_path) as (broker, _, client):
            monkeypatch.setattr(Decryption, "receive", receive)
            for number in range(10):
                (answer,) = await client.ask(usual(number))
                assert answer.code == ResponseCode.SUCCESS
            assert seats(broker) == 0
            assert bodies(broker) == [b"%d" % number for number in range(10)]

    asyncio.run(run())
