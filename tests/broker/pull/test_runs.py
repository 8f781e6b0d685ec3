"""Runs of pulls are answered as if each pull was checked and read by itself."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.pull.runs import PullRuns
from mqlake.broker.pull.standing import StandingPulls
from mqlake.errors import DiskError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION
from mqlake.store.reads.live_reads import LiveReads
from mqlake.store.results import QueueRange
from tests import simulated
from tests.broker.pull.counting import committed, count_runs, pull_counts
from tests.broker.pull.pulls import fill, pull_header
from tests.broker.pull.test_standing import (
    QUEUES,
    TOPICS,
    fill_store,
    pull_frame,
    random_pulls,
)
from tests.broker.running import PATIENCE, Running, running


def opaque_of(frame: bytes) -> int:
    if frame[4] == Serialization.ROCKETMQ:
        return int.from_bytes(frame[13:17])
    return int(frame.partition(b'"opaque":')[2].partition(b",")[0])


async def ask_bursts(broker: Running, bursts: Sequence[Sequence[bytes]]) -> dict[int, bytes]:
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


def of_a_consumer(
    dice: random.Random, count: int, first: int, queues: dict[tuple[str, int], QueueRange]
) -> list[bytes]:
    """Return pulls of a consumer that reads all queues by turns, from where they begin."""
    frames: list[bytes] = []
    kind, most = dice.choice(list(Serialization)), dice.choice((7, 9))
    topic, step = dice.choice(TOPICS[:2]), 0
    while len(frames) < count:
        for queue_id in range(QUEUES):
            offset = queues[topic, queue_id].min_offset + step * most
            header = pull_header(
                offset,
                topic=topic,
                queue_id=queue_id,
                max_msg_nums=most,
                commit_offset=offset,
                sys_flag=HAS_SUBSCRIPTION | COMMITS_OFFSET,
            )
            opaque = first + len(frames)
            frames.append(pull_frame(opaque, int(kind), header, RequestCode.PULL_MESSAGE))
        step += 1
    return frames


def in_bursts(dice: random.Random, frames: list[bytes]) -> list[list[bytes]]:
    bursts, at = list[list[bytes]](), 0
    while at < len(frames):
        count = dice.choice((1, 2, 4, 4, 13, 100))
        bursts.append(frames[at : at + count])
        at += count
    return bursts


@pytest.mark.parametrize("seed", range(3))
def test_runs_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    served = count_runs(monkeypatch)

    async def main() -> None:
        dice = random.Random(seed)
        async with running(tmp_path, mappedFileSizeConsumeQueue=20 * 900) as broker:
            await fill_store(broker, dice, 6000)
            state = broker.state
            queues = {
                (name, queue_id): state.store.reads.queue(name, queue_id)
                for name in TOPICS
                for queue_id in range(QUEUES)
            }
            frames = random_pulls(dice, 500, queues)
            for _ in range(4):
                frames += of_a_consumer(dice, 240, len(frames), queues)
            bursts = in_bursts(dice, frames)
            found: list[tuple[Any, ...]] = []
            for is_on in (False, True):
                with monkeypatch.context() as patch:
                    if not is_on:
                        patch.setattr(PullRuns, "_serve", lambda *_: (None, True))
                        patch.setattr(StandingPulls, "serve", lambda *_: None)
                    before = pull_counts(state)
                    answers = await ask_bursts(broker, bursts)
                    after = pull_counts(state)
                counts = [new - old for new, old in zip(after, before, strict=True)]
                found.append((answers, counts, committed(state, queues)))
                assert bool(served) == is_on
            assert found[0] == found[1]
            assert len(served) > 100

    asyncio.run(main())


def test_pulls_are_served_alone_if_their_copy_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_runs(monkeypatch)
    failed: list[int] = []

    def fail(_: LiveReads, topic: str, queue_id: int, *__: object) -> None:
        failed.append(queue_id)
        raise DiskError(f"{topic} cannot be read", errno.EMFILE)

    async def main() -> None:
        dice = random.Random(1)
        async with running(tmp_path) as broker:
            await fill_store(broker, dice, 3000)
            reads = broker.state.store.reads
            queues = {
                (name, queue_id): reads.queue(name, queue_id)
                for name in TOPICS
                for queue_id in range(QUEUES)
            }
            bursts = in_bursts(dice, of_a_consumer(dice, 240, 0, queues))
            expected = await ask_bursts(broker, bursts)
            monkeypatch.setattr(LiveReads, "copied_by", fail)
            assert await ask_bursts(broker, bursts) == expected

    simulated.run(main())
    assert failed


def test_pulls_that_arrive_alone_are_answered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_runs(monkeypatch)

    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 1000)
            headers = [pull_header(offset, max_msg_nums=7) for offset in range(0, 700, 7)]
            each = [
                [pull_frame(number, int(Serialization.JSON), header, RequestCode.PULL_MESSAGE)]
                for number, header in enumerate(headers)
            ]
            answers = await ask_bursts(broker, each)
            tries: list[object] = []

            def serve_none(*given: object) -> tuple[None, bool]:
                tries.append(given)
                return None, True

            monkeypatch.setattr(PullRuns, "_serve", serve_none)
            assert await ask_bursts(broker, each) == answers
            assert 70 < len(tries) <= len(each), "no pull is looked at twice"

    simulated.run(main())
