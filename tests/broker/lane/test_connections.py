"""Connections join the lane and leave it, and lose nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.lane import kernel, layout
from mqlake.broker.lane.choice import is_chosen
from mqlake.formats.config.topics import Topic
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.frames import encode
from tests.broker.lane.lanes import lane_of, served, with_lane
from tests.broker.lane.raw_client import KINDS, RawClient, usual
from tests.broker.running import Running
from tests.broker.send.random_sends import TOPIC
from tests.broker.slow_reader import SlowReader
from tests.until import until

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")


def seats(broker: Running) -> int:
    """Return how many connections the lane reads."""
    lane: Any = lane_of(broker)
    return len(lane._seats)


def bodies(broker: Running) -> list[bytes]:
    """Return the bodies of the messages of the first queue, but for the first one."""
    return [record.body for record in broker.records(TOPIC)][1:]


async def joined(broker: Running) -> RawClient:
    """Return a connection that the lane reads."""
    client, before = await RawClient.connect(broker), seats(broker)
    await client.ask(usual(0))
    await until(lambda: seats(broker) == before + 1)
    return client


@pytest.mark.parametrize("kind", KINDS)
def test_answers_come_in_the_order_of_the_sends(tmp_path: Path, kind: int) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            client = await joined(broker)
            for burst in (1, 3, 200, 1):
                found = await client.ask(*(usual(number, kind) for number in range(burst)))
                assert [answer.opaque for answer in found] == list(range(burst))
                assert {answer.code for answer in found} == {ResponseCode.SUCCESS}
            assert served(calls) > 200
            expected = [0, *(number for burst in (1, 3, 200, 1) for number in range(burst))]
            assert bodies(broker) == [b"%d" % number for number in expected]

    asyncio.run(run())


def test_unusual_frames_keep_their_place(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            client = await joined(broker)
            unusual = usual(1, i="KEYS\1k\2")
            found = await client.ask(usual(0), unusual, *(usual(at) for at in range(2, 20)))
            assert [answer.opaque for answer in found] == list(range(20))
            offsets = [int(answer.fields["queueOffset"]) for answer in found]
            assert offsets == list(range(offsets[0], offsets[0] + 20))
            assert bodies(broker)[1:] == [b"%d" % number for number in range(20)]
            assert served(calls) > 0

    asyncio.run(run())


def test_a_frame_may_arrive_in_parts(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, _):
            client = await joined(broker)
            frames = b"".join(usual(number) for number in range(1, 8))
            for part in (frames[at : at + 7] for at in range(0, len(frames), 7)):
                client.writer.write(part)
                await asyncio.sleep(0)
            found = await client.answers(7)
            assert [answer.opaque for answer in found] == list(range(1, 8))
            before = seats(broker)
            client.writer.write(usual(8)[:-1])
            await until(lambda: seats(broker) == before - 1 or not before)
            client.writer.write(usual(8)[-1:])
            assert [answer.opaque for answer in await client.answers(1)] == [8]
            await client.ask(usual(9))
            await client.ask(usual(10))
            assert bodies(broker) == [b"%d" % number for number in range(11)]

    asyncio.run(run())


def test_a_connection_of_other_requests_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, _):
            client = await joined(broker)
            ask = encode(request(RequestCode.GET_BROKER_RUNTIME_INFO))
            for _ in range(20):
                (answer,) = await client.ask(ask)
                assert answer.code == ResponseCode.SUCCESS
            assert seats(broker) == 0

    asyncio.run(run())


def test_a_connection_that_is_closed_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, _):
            clients = [await joined(broker) for _ in range(3)]
            peers = len(broker.broker.peers)
            clients[1].close()
            await until(lambda: seats(broker) == 2 and len(broker.broker.peers) == peers - 1)
            clients[2].writer.write(usual(1))
            clients[2].writer.transport.abort()
            await until(lambda: seats(broker) == 1)
            assert (await clients[0].ask(usual(2)))[0].opaque == 2

    asyncio.run(run())


def test_bytes_that_are_no_frame_close_the_connection(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, _):
            client = await joined(broker)
            client.writer.write(usual(1) + bytes(7) + b"\xff" * 100)
            answers = await client.rest()
            assert answers.count(b"TRACE_ON") == 1
            assert seats(broker) == 0

    asyncio.run(run())


def test_a_client_that_does_not_read_is_read_no_more(tmp_path: Path) -> None:
    count = 40_000

    async def run() -> None:
        async with with_lane(tmp_path, mappedFileSizeCommitLog=64 << 20) as (broker, calls):
            client = await SlowReader.connect(broker)
            frames = (usual(number) for number in range(1, count))
            writer: Any = client._writer
            writer.write(usual(0))
            await client.read(1)
            await until(lambda: seats(broker) == 1)

            def is_choked() -> bool:
                return any(peer.is_choked for peer in broker.broker.peers)

            # Whole frames, so that the lane answers them until nobody reads the answers.
            while not is_choked():
                end = broker.state.store.watermarks.end
                writer.write(b"".join(islice(frames, 20)))
                while broker.state.store.watermarks.end == end and not is_choked():  # noqa: ASYNC110
                    await asyncio.sleep(0)
            writing = asyncio.create_task(write(writer, frames))
            assert seats(broker) == 0
            found = await client.read(count - 1)
            await writing
            client.close()
            assert [answer.opaque for answer in found] == list(range(1, count))
            offsets = [int(answer.fields["queueOffset"]) for answer in found]
            assert offsets == list(range(2, count + 1))
            assert served(calls) > 0
            assert layout.UNSENT in calls[::2]

    asyncio.run(run())


async def write(writer: asyncio.StreamWriter, frames: Iterable[bytes]) -> None:
    for frame in frames:
        writer.write(frame)
        await writer.drain()


def test_many_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_FIRST_SOCKETS", 1)

    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            clients = await asyncio.gather(*(joined_soon(broker) for _ in range(150)))
            for turn in range(5):
                frame = usual(turn, KINDS[turn % 2])
                found = await asyncio.gather(*(client.ask(frame) for client in clients))
                assert {answer.opaque for (answer,) in found} == {turn}
            assert len(bodies(broker)) == 6 * 150
            assert served(calls) > 3 * 150

    asyncio.run(run())


async def joined_soon(broker: Running) -> RawClient:
    client = await RawClient.connect(broker)
    await client.ask(usual(0))
    return client


def test_connections_that_are_read_are_not_silent(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            client = await joined(broker)
            (peer,) = (peer for peer in broker.broker.peers if peer.inlet.is_read_directly)
            before = served(calls)
            peer._wire.last_active = 0.0
            await client.ask(usual(1))
            assert served(calls) == before + 1
            server: Any = broker.broker
            server._server._check_some(iter([peer]))
            assert 0.0 < peer.last_active <= asyncio.get_running_loop().time() + 1.0
            assert not peer.is_closed

    asyncio.run(run())


def test_many_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mqlake.broker.lane import topics

    monkeypatch.setattr(topics, "MOST_TOPICS", 8)

    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            names = [f"T{number}" * (number + 1) for number in range(30)]
            for name in names:
                made = Topic(topic_name=name, read_queue_nums=2, write_queue_nums=2)
                broker.state.topics.put(made)
            client = await joined(broker)
            for turn in range(2):
                for name in names:
                    (answer,) = await client.ask(usual(turn, b=name, e=str(turn)))
                    assert answer.code == ResponseCode.SUCCESS
            found = [[one.body for one in broker.records(name, 1)] for name in names]
            assert found == [[b"1"]] * 30
            assert served(calls) > 50

    asyncio.run(run())
