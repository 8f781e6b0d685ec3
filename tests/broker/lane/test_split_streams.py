"""Streams of sends that are split at any byte lead to what the ordinary path leads to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.broker.lane import seats
from mqlake.broker.lane.choice import is_chosen
from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.frames import encode
from tests.broker.lane.lanes import lane_of, with_lane
from tests.broker.lane.raw_client import FIELDS, KINDS, RawClient, usual
from tests.broker.running import PATIENCE, Running, running
from tests.broker.send.random_sends import KEY, TOPIC, batch, made
from tests.broker.send.streams import warm

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

CONNECTIONS = 3
LARGE = b"L" * 70_000
"""A body that the lane leaves to the ordinary path."""


class Write(NamedTuple):
    """Some bytes of one connection's stream, and what happens once they are served.

    Attributes:
        then: "" or a thing that the broker does to the connection.
    """

    connection: int
    size: int
    then: str


def one(kind: str, serialization: int, number: int) -> bytes:
    """Return the frame of a request whose opaque is a number."""
    match kind:
        case "usual":
            return usual(number, serialization)
        case "unusual":
            return made(serialization, FIELDS | {"i": "KEYS\1k\2"}, b"%d" % number, number)
        case "large":
            return made(serialization, FIELDS, LARGE + b"%d" % number, number)
        case "refused":
            return usual(number, serialization, e="99")
        case "batch":
            body = encode_batch([(0, b"%d" % number, KEY.encode())])
            return batch(FIELDS | {"m": "true"}, body, number)
        case _:
            other = request(RequestCode.GET_BROKER_CLUSTER_INFO)
            other.opaque = number
            return encode(other)


FRAMES = st.lists(
    st.tuples(
        st.sampled_from(("usual",) * 12 + ("unusual", "large", "refused", "batch", "other")),
        st.sampled_from(KINDS),
    ),
    min_size=4,
    max_size=24,
)
WRITES = st.lists(
    st.builds(
        Write,
        st.integers(0, CONNECTIONS - 1),
        st.one_of(st.integers(1, 40), st.integers(1, 400), st.integers(1, 3000)),
        st.sampled_from(("",) * 6 + ("leave", "clear", "sweep")),
    ),
    min_size=6,
    max_size=60,
)


class Streams:
    """The connections of one example, and what is still to be written on each.

    Attributes:
        rests: how often an incomplete frame was seen in the lane.
    """

    def __init__(self, broker: Running, frames: list[list[tuple[str, int]]]) -> None:
        self._broker = broker
        self._left = [
            b"".join(one(*each, number) for number, each in enumerate(some)) for some in frames
        ]
        self._counts = [len(some) for some in frames]
        self.rests = 0

    async def outcome(self, writes: list[Write]) -> list[dict[int, tuple[int, str | None]]]:
        """Write everything; return the answers of each connection."""
        clients = [await RawClient.connect(self._broker) for _ in self._left]
        for client in clients:
            await client.ask(usual(0))
        for write in (*writes, *(Write(number, 1 << 30, "") for number in range(CONNECTIONS))):
            left = self._left[write.connection]
            data, self._left[write.connection] = left[: write.size], left[write.size :]
            client = clients[write.connection]
            client.writer.write(data)
            await client.writer.drain()
            for _ in range(3):  # So that most of it is served by itself.
                await asyncio.sleep(0)
            self.rests += self._count_rests()
            self._do(write.then, client)
        found = [
            await client.answers(count) for client, count in zip(clients, self._counts, strict=True)
        ]
        for client in clients:
            client.close()
        return [
            {answer.opaque: (answer.code, answer.fields.get("queueId")) for answer in answers}
            for answers in found
        ]

    def _do(self, what: str, client: RawClient) -> None:
        lane: Any = self._broker_lane()
        if lane is None or not what:
            return
        if what == "clear":
            lane.clear()
        elif what == "sweep":
            lane._pass_on_old(lane._kernel, -1.0)
        else:
            port = client.writer.get_extra_info("sockname")[1]
            for peer in self._broker.broker.peers:
                if peer.address.endswith(f":{port}"):
                    peer.inlet.read_indirectly()

    def _count_rests(self) -> int:
        lane = self._broker_lane()
        return 0 if lane is None else len(lane._kernel.rests)

    def _broker_lane(self) -> Any:
        server: Any = self._broker.broker
        return server._server._shared.direct


def stored(broker: Running) -> list[bytes]:
    """Return the bodies of all messages, without the first ones of brokers and connections."""
    return [record.body[-20:] for record in broker.records(TOPIC)]


def by_connection(
    frames: list[list[tuple[str, int]]], bodies: list[bytes], answers: Any
) -> tuple[Any, ...]:
    """Return what does not depend on how the streams of several connections are mixed."""
    return sorted(bodies), answers, [len(some) for some in frames]


@pytest.fixture
def patient_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let connections stay that send much that is unusual."""
    monkeypatch.setattr(seats, "_MOST_OTHERS", 1 << 30)


class Brokers:
    """A broker with the lane, and one without it, for all examples.

    Attributes:
        rests: see `Streams`.
    """

    def __init__(self, with_it: Running, without: Running) -> None:
        self._brokers = with_it, without
        self.rests = 0

    async def compare(self, frames: list[list[tuple[str, int]]], writes: list[Write]) -> None:
        """Check that both give the same answers, and store the same in the same order."""
        found: list[tuple[Any, ...]] = []
        for broker in self._brokers:
            before = len(stored(broker))
            streams = Streams(broker, frames)
            answers = await streams.outcome(writes)
            self.rests += streams.rests
            bodies = stored(broker)[before:]
            found.append(by_connection(frames, bodies, answers))
        assert found[0] == found[1]

    async def compare_order(self, frames: list[tuple[str, int]], writes: list[Write]) -> None:
        """Check the order of the messages of one connection."""
        some, at_first = [frames, [], []], [each._replace(connection=0) for each in writes]
        found: list[list[bytes]] = []
        for broker in self._brokers:
            before = len(stored(broker))
            streams = Streams(broker, some)
            await streams.outcome(at_first)
            self.rests += streams.rests
            found.append(stored(broker)[before:])
        assert found[0] == found[1]


@pytest.mark.usefixtures("patient_seats")
def test_split_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = asyncio.Runner()
    served_before = 0

    async def start() -> tuple[Brokers, Any, Any, list[int]]:
        inside = with_lane(tmp_path / "lane")
        broker, calls = await inside.__aenter__()
        monkeypatch.setenv("MQLAKE_LANE", "off")
        outside = running(tmp_path / "ordinary")
        other = await outside.__aenter__()
        await warm(other)
        return Brokers(broker, other), inside, outside, calls

    async def bounded(work: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            await work

    with runner:
        brokers, inside, outside, calls = runner.run(start())

        @settings(
            max_examples=60,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(st.lists(FRAMES, min_size=CONNECTIONS, max_size=CONNECTIONS), WRITES, st.booleans())
        def examples(
            frames: list[list[tuple[str, int]]], writes: list[Write], is_alone: bool
        ) -> None:
            if is_alone:
                runner.run(bounded(brokers.compare_order(frames[0], writes)))
            else:
                runner.run(bounded(brokers.compare(frames, writes)))

        try:
            examples()
            served_before = sum(calls[1::2])
        finally:
            runner.run(outside.__aexit__(None, None, None))
            runner.run(inside.__aexit__(None, None, None))
    assert served_before > 200
    assert brokers.rests > 100


def test_a_rest_that_stays_is_passed_on(tmp_path: Path) -> None:
    """Its connection then closes it after its own time, and counts it as held."""

    async def run() -> None:
        async with with_lane(tmp_path) as (broker, _):
            lane: Any = lane_of(broker)
            client = await RawClient.connect(broker)
            await client.ask(usual(0))
            frame = usual(1)
            client.writer.write(usual(2) + frame[:-1])
            await client.answers(1)
            assert len(lane._kernel.rests) == 1
            assert lane._kernel.rests.held > 0
            async with asyncio.timeout(PATIENCE):
                while len(lane._kernel.rests):  # noqa: ASYNC110 (no event says so)
                    await asyncio.sleep(0.01)
            assert lane._kernel.rests.held == 0
            held = [peer.inlet.unfinished for peer in broker.broker.peers]
            assert [size for size in held if size] == [len(frame) - 1]
            client.writer.write(frame[-1:])
            (answer,) = await client.answers(1)
            assert answer.opaque == 1

    asyncio.run(run())


def test_more_rests_than_there_is_room_for(tmp_path: Path) -> None:
    from mqlake.broker.lane import layout

    async def run() -> None:
        async with with_lane(tmp_path) as (broker, _):
            clients = [await RawClient.connect(broker) for _ in range(layout.REST_ROWS + 20)]
            for client in clients:
                await client.ask(usual(0))
            for number, client in enumerate(clients):
                client.writer.write(usual(number)[:-3])
                await client.writer.drain()
            for number, client in enumerate(clients):
                client.writer.write(usual(number)[-3:])
                (answer,) = await client.answers(1)
                assert answer.opaque == number

    asyncio.run(run())
