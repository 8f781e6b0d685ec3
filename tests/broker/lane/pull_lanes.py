"""Brokers whose kernel of pulls is loaded, and what it has served."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.lane import pulls as lane_pulls
from mqlake.broker.lane.choice import is_chosen
from mqlake.broker.lane.pulls import LanePulls
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import BATCH_QUEUES, QUEUE_TYPE, Topic
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization, request
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION, PullHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.stream.frame_reader import Frames
from mqlake.store.append.message import Message
from mqlake.store.results import QueueRange
from tests.broker.pull.pulls import GROUP, pull_header
from tests.broker.running import PATIENCE, Running, running

TOPICS = ("Orders", "Bills", "Batches")
QUEUES = 3
OF_BATCHES = {QUEUE_TYPE: BATCH_QUEUES}
TAGS = ("*", "t1", "t0 || t2", None)

Offsets = tuple[int | None, int | None]

with_kernels = pytest.mark.skipif(not is_chosen(), reason="there is no lane")


class PullLane:
    """The pulls of a broker's lane.

    Attributes:
        served: the frames that it has served.
    """

    def __init__(self, pulls: LanePulls) -> None:
        self.pulls = pulls
        self.served: list[bytes] = []


def pulls_of(broker: Running) -> LanePulls:
    """Return what serves the pulls of a broker's lane."""
    server: Any = broker.broker
    pulls = server._server._router._served[RequestCode.PULL_MESSAGE].route.run.__self__
    assert isinstance(pulls, LanePulls)
    return pulls


@asynccontextmanager
async def pulling(
    path: Path, patch: pytest.MonkeyPatch, *, learns_at_once: bool = True, **settings: object
) -> AsyncIterator[tuple[Running, PullLane]]:
    """Run a broker whose kernel of pulls is loaded; yield it, and what the kernel serves."""
    async with running(path, **settings) as broker:
        lane = PullLane(pulls_of(broker))
        take: Any = LanePulls._take  # type: ignore[attr-defined]

        def noted(pulls: LanePulls, peer: Peer, frames: Frames) -> int:
            at = frames.at
            count = take(pulls, peer, frames)
            while at < frames.at:
                end = at + 4 + int.from_bytes(frames.data[at : at + 4])
                lane.served.append(frames.data[at:end])
                at = end
            return count

        with patch.context() as patched:
            patched.setattr(LanePulls, "_take", noted)
            patched.setattr(lane_pulls, "_TURN", PATIENCE)
            if learns_at_once:
                patched.setattr(LanePulls, "_was_seen", lambda *_: True)
            await asyncio.wait_for(lane.pulls.load(), PATIENCE)
            assert lane.pulls._is_loaded()  # type: ignore[attr-defined]
            yield broker, lane


def pull_frame(opaque: int, kind: int, header: PullHeader, code: int = 11) -> bytes:
    """Return the frame of a pull."""
    asked = request(code, header)
    asked.opaque, asked.serialization = opaque, kind
    return encode(asked)


def opaque_of(frame: bytes) -> int:
    """Return the opaque of a frame."""
    if frame[4] == Serialization.ROCKETMQ:
        return int.from_bytes(frame[13:17])
    return int(frame.partition(b'"opaque":')[2].partition(b",")[0])


async def ask_bursts(broker: Running, bursts: Iterable[Sequence[bytes]]) -> dict[int, bytes]:
    """Return the frames that answer these by their opaque; those of a burst are sent together."""
    host, port = broker.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answers: dict[int, bytes] = {}
    try:
        async with asyncio.timeout(PATIENCE):
            for burst in bursts:
                writer.write(b"".join(burst))
                for _ in burst:
                    length = await reader.readexactly(4)
                    frame = length + await reader.readexactly(int.from_bytes(length))
                    assert answers.setdefault(opaque_of(frame), frame) is frame
    finally:
        writer.close()
    return answers


def random_pulls(
    dice: random.Random, count: int, queues: dict[tuple[str, int], QueueRange], first: int = 0
) -> list[bytes]:
    """Return pulls, of which most continue where one like them has ended."""
    frames: list[bytes] = []
    while len(frames) < count:
        topic, queue_id = dice.choice(list(queues))
        low, end = queues[topic, queue_id]
        kind, offset = dice.choice(list(Serialization)), dice.choice((0, low, low, low + 77))
        fields: dict[str, Any] = {
            "consumer_group": dice.choice((GROUP, "others")),
            "topic": topic,
            "queue_id": queue_id,
            "max_msg_nums": dice.choice((1, 7, 32, 32, 32, 100)),
            "subscription": dice.choice(TAGS) if dice.random() < 0.4 else "*",
            "max_msg_bytes": dice.choice((None, 0, 700, 1 << 18)),
            "sys_flag": HAS_SUBSCRIPTION | dice.choice((0, COMMITS_OFFSET)),
        }
        code = RequestCode.PULL_MESSAGE
        if dice.random() < 0.1:
            code = RequestCode.LITE_PULL_MESSAGE
        for _ in range(dice.randint(1, 12)):
            header = pull_header(offset, commit_offset=max(0, offset - 5), **fields)
            frames.append(pull_frame(first + len(frames), int(kind), header, code))
            offset += min(fields["max_msg_nums"], 32)
            if dice.random() < 0.05:
                offset += dice.choice((-50, -1, 1, 300))
            if offset > end + 40:
                break
    return frames


def in_bursts(dice: random.Random, frames: list[bytes]) -> list[list[bytes]]:
    """Return frames in groups that are sent together."""
    bursts, at = list[list[bytes]](), 0
    while at < len(frames):
        count = dice.choice((1, 2, 4, 4, 13, 100))
        bursts.append(frames[at : at + count])
        at += count
    return bursts


def damage(broker: Running, dice: random.Random) -> None:
    """Change one bit of the log."""
    log = broker.state.store.core.log  # type: ignore[attr-defined]
    segment = dice.choice(log.segments)
    place = log.place(segment.base)
    assert place is not None
    at = dice.randrange(min(place.end, max(1, log.end - segment.base)))
    with (Path(broker.broker.settings.store_path) / segment.path).open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0] ^ 1 << dice.randrange(8)
        file.seek(at)
        file.write(bytes((byte,)))


async def fill_store(broker: Running, dice: random.Random, count: int) -> None:
    """Put messages into all queues by turns, damage some, and remove the first of the log."""
    store: Any = broker.state.store
    for name in TOPICS:
        attributes = OF_BATCHES if name == "Batches" else {}
        broker.state.topics.put(Topic(name, QUEUES, QUEUES, attributes=attributes))
    for first in range(0, count, 200):
        await store.put_many(
            [
                Message(
                    dice.choice(TOPICS),
                    dice.randbytes(dice.choice((1, 50, 128, 1000))),
                    tags=f"t{number % 3}",
                    queue_id=dice.randrange(QUEUES),
                )
                for number in range(first, first + 200)
            ]
        )
    # A turn ends after some milliseconds, whatever is left.
    while store.watermarks.dispatched < store.watermarks.confirmed:
        store.core.tick()
    for _ in range(5):
        damage(broker, dice)
    assert store.core.log.remove_first() is not None
    store.core.queues.trim(store.core.log.min_offset)


def all_queues(broker: Running) -> dict[tuple[str, int], QueueRange]:
    """Return the offsets of all queues."""
    reads = broker.state.store.reads
    keys = [(name, queue_id) for name in TOPICS for queue_id in range(QUEUES)]
    return {key: reads.queue(*key) for key in keys}


def pull_counts(state: BrokerState) -> tuple[int, int, int]:
    """Return how many messages were got, and how many pulls found some or none."""
    return state.stats.got_total, state.stats.pulls, state.stats.missed


def committed(state: BrokerState, queues: Iterable[tuple[str, int]]) -> list[Offsets]:
    """Return the offsets that pulls of two groups committed, and up to where they pulled."""
    offsets = state.store.config.consumer_offsets
    return [
        (offsets.query(group, *queue), offsets.query_pull(group, *queue))
        for group in (GROUP, "others")
        for queue in queues
    ]
