"""Pulls that are like one before are answered as if each was checked and read by itself."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.pull import requests
from mqlake.broker.pull.runs import PullRuns
from mqlake.broker.pull.standing import StandingPulls
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import (
    BATCH_QUEUES,
    PERM_READ,
    PERM_WRITE,
    QUEUE_TYPE,
    Topic,
)
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, Serialization, request
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION, PullHeader
from mqlake.store.append.message import Message
from mqlake.store.reads import copied_ahead
from mqlake.store.results import QueueRange
from tests import simulated
from tests.broker.consuming import Consumer, subscription
from tests.broker.pull.counting import committed, count_runs, pull_counts
from tests.broker.pull.pulls import GROUP, fill, numbers, pull, pull_header
from tests.broker.running import PATIENCE, Running, running

TOPICS = ("Orders", "Bills", "Batches")
QUEUES = 3
OF_BATCHES = {QUEUE_TYPE: BATCH_QUEUES}
WAYS = ("one by one", "runs")
TAGS = ("*", "t1", "t0 || t2", None)


def count_served(monkeypatch: pytest.MonkeyPatch, by: str = "one by one") -> list[bytes]:
    """Return the list that gets the answers of pulls that stand, which are served so."""
    if by == "runs":
        return count_runs(monkeypatch)
    served, serve = list[bytes](), StandingPulls.serve
    monkeypatch.setattr(PullRuns, "take", lambda *_: 0)

    def counted(standing: StandingPulls, asked: Command, header: PullHeader) -> bytes | None:
        answer = serve(standing, asked, header)
        if answer is not None:
            served.append(answer)
        return answer

    monkeypatch.setattr(StandingPulls, "serve", counted)
    return served


async def ask_each(broker: Running, frames: Iterable[bytes]) -> list[bytes]:
    """Return the frames that answer these, one asked after the other on one connection."""
    host, port = broker.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answers: list[bytes] = []
    try:
        async with asyncio.timeout(PATIENCE):
            for frame in frames:
                writer.write(frame)
                length = await reader.readexactly(4)
                answers.append(length + await reader.readexactly(int.from_bytes(length)))
    finally:
        writer.close()
    return answers


def pull_frame(opaque: int, kind: int, header: PullHeader, code: int) -> bytes:
    asked = request(code, header)
    asked.opaque, asked.serialization = opaque, kind
    return encode(asked)


def random_pulls(
    dice: random.Random, count: int, queues: dict[tuple[str, int], QueueRange]
) -> list[bytes]:
    """Return pulls, of which most go on where one like them has ended."""
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
            frames.append(pull_frame(len(frames), int(kind), header, code))
            offset += min(fields["max_msg_nums"], 32)
            if dice.random() < 0.05:
                offset += dice.choice((-50, -1, 1, 300))
            if offset > end + 40:
                break
    return frames


async def fill_store(broker: Running, dice: random.Random, count: int) -> None:
    """Put messages into all queues by turns, damage some, and remove the first of the log."""
    store = broker.state.store
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
        store.core.tick()
    log = store.core.log
    for _ in range(5):
        segment = dice.choice(log.segments)
        place = log.place(segment.base)
        assert place is not None
        at = dice.randrange(min(place.end, max(1, log.end - segment.base)))
        file = log.file(segment)
        assert file is not None
        file.mapping()[at] ^= 1 << dice.randrange(8)
    assert log.remove_first() is not None
    store.core.queues.trim(log.min_offset)


@pytest.mark.parametrize("seed", range(3))
def test_standing_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    async def main() -> None:
        dice = random.Random(seed)
        # What a pull past the end is answered depends on what others have committed before.
        fields = {"mappedFileSizeConsumeQueue": 20 * 900, "correctOffsetPastEnd": False}
        async with running(tmp_path, **fields) as broker:
            await fill_store(broker, dice, 6000)
            reads, state = broker.state.store.reads, broker.state
            queues = {
                (name, queue_id): reads.queue(name, queue_id)
                for name in TOPICS
                for queue_id in range(QUEUES)
            }
            frames = random_pulls(dice, 1200, queues)
            found: list[tuple[Any, ...]] = []
            for is_on in (False, True):
                with monkeypatch.context() as patch:
                    served = count_served(patch)
                    if not is_on:
                        patch.setattr(StandingPulls, "serve", lambda *_: None)
                    before = pull_counts(state)
                    answers = await ask_each(broker, frames)
                    after = pull_counts(state)
                counts = [new - old for new, old in zip(after, before, strict=True)]
                found.append((answers, counts, committed(state, queues)))
                assert len(served) > 100 or not is_on
            assert found[0] == found[1]

    simulated.run(main())


async def pull_steps(by: Running | Consumer, first: int, count: int, **fields: Any) -> int:
    """Pull steps of 32 that follow each other; return the offset behind them."""
    for number in range(first, first + count):
        found = await pull(by, number * 32, **fields)
        assert found.bodies == numbers(number * 32, number * 32 + 32)
    return (first + count) * 32


def close_group(broker: Running) -> None:
    broker.state.groups.put(SubscriptionGroup(group_name=GROUP, consume_enable=False))


def close_topic(broker: Running) -> None:
    topic = broker.state.topics.get("Orders")
    assert topic is not None
    broker.state.topics.put(msgspec.structs.replace(topic, perm=PERM_WRITE))


def close_broker(broker: Running) -> None:
    settings = msgspec.structs.replace(broker.runtime.settings, broker_permission=PERM_WRITE)
    broker.runtime.live.replace(settings)


def forbid(broker: Running) -> None:
    broker.state.groups.forbid(GROUP, "Orders", PERM_READ)


def drop_group(broker: Running) -> None:
    del broker.state.clients.consumers[GROUP]


def subscribe_anew(broker: Running) -> None:
    group = broker.state.clients.consumers[GROUP]
    group.subscribe([], group.owner)


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (close_group, ResponseCode.NO_PERMISSION),
        (close_topic, ResponseCode.NO_PERMISSION),
        (close_broker, ResponseCode.NO_PERMISSION),
        (forbid, ResponseCode.NO_PERMISSION),
        (drop_group, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        (subscribe_anew, ResponseCode.SUBSCRIPTION_NOT_EXIST),
    ],
)
def test_what_has_changed_is_checked_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Running], None],
    code: int,
    by: str,
) -> None:
    served = count_served(monkeypatch, by)

    async def main() -> None:
        async with running(tmp_path, mappedFileSizeConsumeQueue=20_000) as broker:
            await fill(broker, 600)
            consumer = Consumer(broker)
            await consumer.beat(GROUP, subscription("Orders"))
            offset = await pull_steps(consumer, 0, 6, sys_flag=0, subscription=None)
            assert served
            del served[:]
            change(broker)
            found = await pull(consumer, offset, sys_flag=0, subscription=None)
            assert (found.code, found.records) == (code, [])
            assert not served
            await consumer.close()

    simulated.run(main())


@pytest.mark.parametrize("by", WAYS)
def test_a_reset_comes_before_what_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    served = count_served(monkeypatch, by)

    async def main() -> None:
        async with running(tmp_path, mappedFileSizeConsumeQueue=20_000) as broker:
            await fill(broker, 600)
            offset = await pull_steps(broker, 0, 6)
            assert served
            broker.state.store.config.consumer_offsets.reset(GROUP, "Orders", 0, 17)
            found = await pull(broker, offset)
            assert (found.code, found.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
            assert found.offsets.next_begin_offset == 17

    simulated.run(main())


@pytest.mark.parametrize("by", WAYS)
def test_settings_take_effect_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    served = count_served(monkeypatch, by)

    async def main() -> None:
        async with running(tmp_path, mappedFileSizeConsumeQueue=20_000) as broker:
            await fill(broker, 600)
            offset = await pull_steps(broker, 0, 6)
            assert served
            changed = msgspec.structs.replace(
                broker.runtime.settings, max_transfer_count_on_message_in_memory=3
            )
            broker.runtime.live.replace(changed)
            assert (await pull(broker, offset)).bodies == numbers(offset, offset + 3)

    simulated.run(main())


@pytest.mark.parametrize("by", WAYS)
def test_a_topic_that_was_created_again_has_nothing_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    served = count_served(monkeypatch, by)

    async def main() -> None:
        async with running(tmp_path, mappedFileSizeConsumeQueue=20_000) as broker:
            await fill(broker, 600)
            offset = await pull_steps(broker, 0, 6)
            assert served
            await broker.state.store.removals.remove("Orders")
            await fill(broker, 600, start=1000)
            first = broker.state.store.reads.queue("Orders", 0).min_offset
            for at in (offset, first, first + offset):
                assert not set((await pull(broker, at)).bodies) & set(numbers(0, 600))
            assert (await pull(broker, first)).bodies == numbers(1000, 1032)

    simulated.run(main())


@pytest.mark.parametrize("by", WAYS)
def test_messages_that_retention_removed_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    served = count_served(monkeypatch, by)

    async def main() -> None:
        async with running(
            tmp_path, mappedFileSizeConsumeQueue=20_000, mappedFileSizeCommitLog=60_000
        ) as broker:
            await fill(broker, 1000)
            offset = await pull_steps(broker, 0, 6)
            assert served
            del served[:]
            store = broker.state.store.core
            while store.reads.queue("Orders", 0).min_offset <= offset:
                assert store.log.remove_first() is not None
                store.queues.trim(store.log.min_offset)
            found = await pull(broker, offset)
            assert (found.code, found.remark) == (
                ResponseCode.PULL_OFFSET_MOVED,
                "OFFSET_TOO_SMALL",
            )
            assert not served

    simulated.run(main())


@pytest.mark.parametrize("by", WAYS)
def test_light_pulls_are_checked_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    served = count_served(monkeypatch, by)

    async def main() -> None:
        async with running(
            tmp_path, mappedFileSizeConsumeQueue=20_000, litePullMessageEnable=False
        ) as broker:
            await fill(broker, 600)
            offset = await pull_steps(broker, 0, 6)
            assert served
            answer = await broker.ask(RequestCode.LITE_PULL_MESSAGE, pull_header(offset))
            assert (answer.code, bytes(answer.body)) == (ResponseCode.NO_PERMISSION, b"")

    simulated.run(main())


def test_what_has_changed_while_a_pull_waited_for_the_disk_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    async def main() -> None:
        async with running(tmp_path, mappedFileSizeConsumeQueue=20_000) as broker:
            await fill(broker, 600)
            for at in (0, 32):  # what comes behind is known ahead
                broker.state.store.reads.get(
                    "Orders", 0, at, 32, tags="*", max_bytes=1 << 18, exact=False
                )
            with monkeypatch.context() as patch:
                patch.setattr(requests, "warm_up", lambda *_: wait)
                waiting = asyncio.create_task(pull(broker, 64))
                assert await asyncio.to_thread(begun.wait, PATIENCE)
                close_broker(broker)
                go_on.set()
                assert (await waiting).bodies == numbers(64, 96)
            assert (await pull(broker, 96)).code == ResponseCode.NO_PERMISSION

    asyncio.run(main())


def test_a_place_is_given_back_with_messages_left_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copied_ahead, "MOST_COPIES", 1)
    served = count_served(monkeypatch)

    async def main() -> None:
        async with running(tmp_path, mappedFileSizeConsumeQueue=20 * 3000) as broker:
            await fill(broker, 2900)
            for at in range(0, 2700, 30):
                found = await pull(broker, at, max_msg_nums=30)
                assert found.bodies == numbers(at, at + 30)
            assert len(served) > 70

    simulated.run(main())


def test_places_that_nobody_uses_are_not_kept_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copied_ahead, "MOST_COPIES", 1)
    monkeypatch.setattr(copied_ahead, "_RECENT", 10)
    served = count_served(monkeypatch)

    async def main() -> None:
        async with running(tmp_path, mappedFileSizeConsumeQueue=20 * 3000) as broker:
            await fill(broker, 600)
            await fill(broker, 2000, queue_id=1)
            await pull_steps(broker, 0, 5)
            before = len(served)
            await pull_steps(broker, 0, 8, queue_id=1)
            assert len(served) == before
            await pull_steps(broker, 8, 40, queue_id=1)
            assert len(served) > before + 20

    simulated.run(main())


def test_places_are_left_to_those_who_use_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copied_ahead, "MOST_COPIES", 2)
    monkeypatch.setattr(copied_ahead, "_RECENT", 6)
    served = count_served(monkeypatch)

    async def main() -> None:
        async with running(tmp_path, mappedFileSizeConsumeQueue=20_000) as broker:
            broker.state.topics.make("Orders", 4)
            for queue_id in range(3):
                await fill(broker, 600, queue_id=queue_id)
            for queue_id in range(2):
                await pull_steps(broker, 0, 5, queue_id=queue_id)
            before = len(served)
            await pull_steps(broker, 0, 5, queue_id=2)
            assert len(served) == before, "the places of both others were used lately"
            for first in range(5, 15, 2):
                await pull_steps(broker, first, 2, queue_id=1)
            before = len(served)
            await pull_steps(broker, 5, 6, queue_id=2)
            assert len(served) > before, "the first queue's place was not used lately"
            await pull_steps(broker, 5, 5, queue_id=0)

    simulated.run(main())
