"""Sends and pulls are answered alike, whichever way their bytes reach the broker's families."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mqlake.broker.lane import lane as lane_module
from mqlake.broker.lane import layout, pull_layout, seats
from mqlake.broker.lane.kernel import LaneKernel
from mqlake.broker.lane.lane import Lane
from mqlake.broker.lane.pull_turns import PullTurns
from mqlake.broker.lane.pulls import LanePulls
from mqlake.formats.config.topics import Topic
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization, request
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION, MAY_SUSPEND
from mqlake.store.append.message import Message
from tests.broker.lane.lanes import lane_of
from tests.broker.lane.pull_lanes import (
    Offsets,
    opaque_of,
    pull_counts,
    pull_frame,
    pulls_of,
    with_kernels,
)
from tests.broker.lane.test_pull_changes import Frame, without_times
from tests.broker.pull.pulls import fill, polls, pull_header
from tests.broker.running import PATIENCE, Running, next_port, running
from tests.broker.send.random_sends import KEY, made
from tests.protocol.messages import SEND_FIELDS
from tests.until import until

pytestmark = with_kernels

TOPICS, QUEUES = ("Orders", "Bills"), 3
CONNECTIONS = 3
SMALL = 4096
"""Bytes of a connection's buffer: large answers cannot be sent at once."""
HOUR = 3_600_000
LONG = HOUR * 1_000_000
_FIRST = 100
"""Messages of each queue at first."""
TURNS, BYTES, ORDINARY = "turns", "bytes", "ordinary"
"""The lane receives the bytes; it gets them from transports; there is no lane."""

Queue = tuple[str, int]


class Client:
    """One connection, and the frames that it has received."""

    def __init__(self, one: socket.socket) -> None:
        self._socket = one
        self.frames: dict[int, bytes] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, broker: Running, buffer: int | None) -> Client:
        host, port = broker.address.split(":")
        one = socket.socket()
        if buffer is not None:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        one.connect((host, int(port)))
        one.setblocking(False)
        return cls(one)

    async def _read(self) -> None:
        loop, data = asyncio.get_running_loop(), bytearray()
        while more := await loop.sock_recv(self._socket, 1 << 18):
            data += more
            while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4]):
                frame = bytes(data[: 4 + int.from_bytes(data[:4])])
                assert self.frames.setdefault(opaque_of(frame), frame) is frame
                del data[: len(frame)]

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def has(self, opaques: Sequence[int]) -> None:
        """Wait until these requests are answered."""
        async with asyncio.timeout(PATIENCE):
            while not self._reading.done() and not self.frames.keys() >= set(opaques):  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert self.frames.keys() >= set(opaques)

    async def close(self) -> None:
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        self._socket.close()


class Outcome(NamedTuple):
    """What a broker has answered, but for times, and what it has then."""

    answers: list[dict[int, Frame]]
    offsets: list[Offsets]
    counts: tuple[int, ...]


class Traffic:
    """Random sends and pulls, the same for each broker with the same seed.

    A queue is never sent to and pulled from at one time, and gets no more than one message at a
    time: what a pull finds then does not depend on when messages are dispatched.
    """

    def __init__(self, broker: Running, seed: int) -> None:
        self._broker, self._dice = broker, random.Random(seed)
        self._opaque, self._is_usual = 0, False
        self._clients: list[Client] = []
        self._all = [(topic, queue_id) for topic in TOPICS for queue_id in range(QUEUES)]
        self._places: dict[tuple[int, Queue], int] = {}

    async def outcome(self, count: int) -> Outcome:
        broker = self._broker
        for name in TOPICS:
            broker.state.topics.put(Topic(name, QUEUES, QUEUES))
        await self._fill()
        buffers = None, SMALL, None
        self._clients = [await Client.connect(broker, buffer) for buffer in buffers]
        seldom = self._delete_topic, self._remove_segment
        for _ in range(count):
            if self._dice.random() < 0.06:
                await self._dice.choice(seldom)()
            await self._burst(self._dice.randrange(CONNECTIONS))
        polls(broker).stop()
        wanted = range(1, self._opaque + 1)
        await until(lambda: len(self._answered()) == len(wanted))
        for client in self._clients:
            await client.close()
        return Outcome(
            [
                {opaque: without_times(one) for opaque, one in client.frames.items()}
                for client in self._clients
            ],
            self._committed(),
            self._counts(),
        )

    async def _fill(self) -> None:
        """Put some messages into each queue."""
        store, dice = self._broker.state.store, self._dice
        messages = [
            Message(queue[0], dice.randbytes(900), tags=f"t{n % 3}", queue_id=queue[1])
            for queue in self._all
            for n in range(_FIRST)
        ]
        await store.put_many(messages)
        store.core.tick()  # type: ignore[attr-defined]

    def _answered(self) -> list[int]:
        return [opaque for client in self._clients for opaque in client.frames]

    async def _burst(self, number: int) -> None:
        """Send requests at once, or split somewhere; wait until all are served."""
        dice, client, core = self._dice, self._clients[number], self._broker.state.store.core
        self._is_usual = dice.random() < 0.7
        sent_to = dice.sample(self._all, dice.randint(0, 4))
        others = [each for each in self._all if each not in sent_to]
        frames, must_be_answered = list[bytes](), list[int]()
        for queue in sent_to:
            frames.append(self._send(queue))
            must_be_answered.append(self._opaque)
        for _ in range(dice.randint(0, 4)):
            frames += self._pulls(number, dice.choice(others))
        dice.shuffle(frames)
        last = request(RequestCode.GET_BROKER_CLUSTER_INFO)
        last.opaque = self._next()
        must_be_answered.append(self._opaque)
        data, at = b"".join(frames), dice.choice((0, 0, 0, 1, 100, 1000))
        await client.send(data[:at])
        for _ in range(3):
            await asyncio.sleep(0)
        await client.send(data[at:] + encode(last))
        await client.has(must_be_answered)
        core.tick()  # type: ignore[attr-defined]
        waiting = polls(self._broker)
        await until(lambda: not waiting._ready and not waiting._is_serving)

    def _next(self) -> int:
        self._opaque += 1
        return self._opaque

    def _send(self, queue: Queue) -> bytes:
        dice, (topic, queue_id) = self._dice, queue
        tags = f"TAGS\x01t{dice.randrange(3)}\x02"
        # The lane leaves this to the ordinary path.
        more = "" if self._is_usual else dice.choice(("", "KEYS\x01ü\x02"))
        fields = SEND_FIELDS | {"i": KEY + tags + more, "b": topic, "e": str(queue_id)}
        kind, body = dice.choice(list(Serialization)), dice.randbytes(dice.choice((1, 60, 9000)))
        return made(int(kind), fields, body, self._next())

    def _pulls(self, number: int, queue: Queue) -> list[bytes]:
        dice, (topic, queue_id) = self._dice, queue
        place, end = self._places.get((number, queue), 0), self._reads(queue)
        offset = dice.choice((place, place, place, dice.randrange(end)))
        if not self._is_usual:
            offset = dice.choice((0, offset, dice.randrange(-3, end + 3), end, 1 << 40))
        flags = HAS_SUBSCRIPTION | dice.choice((0, COMMITS_OFFSET, MAY_SUSPEND))
        kind, most = dice.choice(list(Serialization)), dice.choice((1, 4, 32))
        tags, frames = dice.choice(("*", "*", "*", "t1", "t0 || t2")), list[bytes]()
        for _ in range(dice.randint(1, 9)):
            header = pull_header(
                offset,
                consumer_group=f"group-{number}",
                topic=topic,
                queue_id=queue_id,
                max_msg_nums=most,
                sys_flag=flags,
                subscription=tags,
                commit_offset=max(0, offset - dice.choice((0, 0, 5))),
                suspend_timeout_millis=HOUR,
            )
            frames.append(pull_frame(self._next(), int(kind), header))
            offset += dice.choice((most, most, 0, -1))
            if self._is_usual and not 0 <= offset < end:
                break
        self._places[number, queue] = max(0, offset) % end
        return frames

    def _reads(self, queue: Queue) -> int:
        return max(1, self._broker.state.store.reads.queue(*queue).max_offset)

    async def _delete_topic(self) -> None:
        name, state = self._dice.choice(TOPICS), self._broker.state
        state.topics.remove(name)
        await state.store.removals.remove(name)
        state.topics.put(Topic(name, QUEUES, QUEUES))

    async def _remove_segment(self) -> None:
        core: Any = self._broker.state.store.core  # type: ignore[attr-defined]
        if len(core.log.segments) > 2 and core.log.remove_first() is not None:
            core.queues.trim(core.log.min_offset)

    def _committed(self) -> list[Offsets]:
        offsets = self._broker.state.store.config.consumer_offsets
        groups = [f"group-{number}" for number in range(CONNECTIONS)]
        keys = [(group, *queue) for group in groups for queue in self._all]
        return [(offsets.query(*key), offsets.query_pull(*key)) for key in keys]

    def _counts(self) -> tuple[int, ...]:
        stats, served = self._broker.state.stats, self._broker.broker.served
        codes = RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE
        return (stats.got_total, stats.pulls, stats.missed, *(served[code] for code in codes))


@asynccontextmanager
async def serving(
    path: Path, way: str, patch: pytest.MonkeyPatch, **settings: object
) -> AsyncIterator[Running]:
    """Run a broker that serves in one of three ways, with all kernels loaded."""
    patch.setenv("MQLAKE_LANE", "off" if way == ORDINARY else "on")
    patch.setattr(seats, "_MOST_OTHERS", 1 << 30)
    patch.setattr(LanePulls, "_was_seen", lambda *_: True)
    patch.setattr(lane_module, "_SHORT_TURN", LONG)
    if way == BYTES:
        patch.setattr(Lane, "join", lambda *_: None)
    async with running(path, **settings) as broker:
        if way != ORDINARY:
            for one in (lane_of(broker), pulls_of(broker)):
                await asyncio.wait_for(one.load(), PATIENCE)
                assert one._is_loaded()  # type: ignore[attr-defined]
        yield broker


def count_pulls(patch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the numbers of pulls which turns of the lane serve."""
    counts, note = list[int](), PullTurns.note

    def noted(turns: PullTurns) -> None:
        counts.append(turns._numbers[pull_layout.NOTES])  # type: ignore[attr-defined]
        note(turns)

    patch.setattr(PullTurns, "note", noted)
    return counts


@pytest.mark.parametrize(
    ("seed", "turn", "flush"),
    [
        (0, LONG, "ASYNC_FLUSH"),
        pytest.param(1, LONG, "SYNC_FLUSH", marks=pytest.mark.nightly),
        pytest.param(2, 100_000, "ASYNC_FLUSH", marks=pytest.mark.nightly),
        (3, 20_000, "SYNC_FLUSH"),
    ],
)
def test_three_ways_give_the_same_answers(tmp_path: Path, seed: int, turn: int, flush: str) -> None:
    settings: dict[str, object] = {
        "listenPort": next_port(),
        "correctOffsetPastEnd": False,
        "flushDiskType": flush,
        "mappedFileSizeConsumeQueue": 20 * 150,
        "mappedFileSizeCommitLog": 120_000,
    }

    async def main(way: str, patch: pytest.MonkeyPatch) -> Outcome:
        async with serving(tmp_path / way, way, patch, **settings) as broker:
            return await Traffic(broker, seed).outcome(150)

    found: dict[str, Outcome] = {}
    served: list[int] = []
    for way in (TURNS, BYTES, ORDINARY):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lane_module, "_TURN", turn)
            counts = count_pulls(patch)
            found[way] = asyncio.run(main(way, patch))
            served.append(sum(counts))
    for way in (TURNS, BYTES):
        for of_lane, expected in zip(found[way].answers, found[ORDINARY].answers, strict=True):
            assert of_lane.keys() == expected.keys()
            for opaque, frame in of_lane.items():
                assert frame == expected[opaque], f"{way} {opaque}"
        assert found[way] == found[ORDINARY]
    assert served[1:] == [0, 0]
    assert served[0] > 100 or turn < LONG


async def pull_all(client: Client, first: int, count: int, **fields: Any) -> None:
    """Pull so many times at once; wait for the answers."""
    opaques = range(first, first + count)
    frames = [pull_frame(number, 0, pull_header(0, **fields)) for number in opaques]
    await client.send(b"".join(frames))
    await client.has(opaques)


def test_connections_that_pull_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = count_pulls(monkeypatch)

    async def main() -> None:
        settings = {"slowRequestMillis": 60_000}
        async with serving(tmp_path, TURNS, monkeypatch, **settings) as broker:
            await fill(broker, 100)
            client = await Client.connect(broker, None)
            lane: Any = lane_of(broker)
            for number in range(20):
                await pull_all(client, 10 * number, 10, sys_flag=HAS_SUBSCRIPTION | COMMITS_OFFSET)
            await until(lambda: len(lane._seats) == 1)
            await pull_all(client, 1000, 10)
            assert sum(counts) > 100
            assert [opaque for opaque in client.frames if opaque < 200] == list(range(200))
            assert broker.broker.served[RequestCode.PULL_MESSAGE] == 210
            assert pull_counts(broker.state) == (210 * 32, 210, 0)
            latencies = broker.broker.latencies
            assert latencies is not None
            kinds = {kind: times.count for kind, times in latencies.all().items()}
            pulls = [
                n for kind, n in kinds.items() if kind.request_code == RequestCode.PULL_MESSAGE
            ]
            assert pulls == [210]
            await client.close()

    asyncio.run(main())


def leave_with_parts(patch: pytest.MonkeyPatch) -> None:
    """Let connections leave while what a call of the kernel has put is noted, if a part of an
    answer was sent.
    """
    serve, note = LaneKernel.serve, Lane._note  # type: ignore[attr-defined]
    reasons = [layout.IDLE]

    def served(kernel: LaneKernel, *arguments: Any) -> int:
        reasons[0] = serve(kernel, *arguments)
        return reasons[0]

    def noted(lane: Any, kernel: LaneKernel) -> None:
        note(lane, kernel)
        if reasons[0] == layout.UNSENT:
            for peer in list(lane._seats):
                peer.inlet.read_indirectly()

    patch.setattr(LaneKernel, "serve", served)
    patch.setattr(Lane, "_note", noted)


@pytest.mark.parametrize("leaves", [False, True])
def test_answers_that_a_socket_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, leaves: bool
) -> None:
    counts = count_pulls(monkeypatch)
    if leaves:
        leave_with_parts(monkeypatch)

    async def main() -> None:
        files = {"mappedFileSizeCommitLog": 1 << 20, "mappedFileSizeConsumeQueue": 20_000}
        async with serving(tmp_path, TURNS, monkeypatch, **files) as broker:
            broker.state.topics.put(Topic("Orders", 1, 1))
            bodies = [bytes((number,)) * 8000 for number in range(32)]
            await broker.state.store.put_many([Message("Orders", body) for body in bodies])
            broker.state.store.core.tick()  # type: ignore[attr-defined]
            client = await Client.connect(broker, None)
            await pull_all(client, 0, 1)
            for peer in broker.broker.peers:
                of_broker: Any = peer._wire._transport.get_extra_info("socket")  # type: ignore[attr-defined]
                of_broker.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            reasons, do = list[int](), Lane._do  # type: ignore[attr-defined]

            def noted(lane: Lane, kernel: Any, reason: int) -> None:
                reasons.append(reason)
                do(lane, kernel, reason)

            monkeypatch.setattr(Lane, "_do", noted)
            first = 1
            while layout.UNSENT not in reasons or first < 60:
                await pull_all(client, first, 15)
                first += 15
            for frame in client.frames.values():
                assert [one[4] for one in without_times(frame)[1]] == bodies
            assert sum(counts) > 0
            await client.close()

    asyncio.run(main())
