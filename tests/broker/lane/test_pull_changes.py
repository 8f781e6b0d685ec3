"""Whatever happens to a broker, its lane answers pulls as the ordinary path does."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from mqlake.formats import record
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ, PERM_WRITE, Topic
from mqlake.protocol.command import Serialization
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION
from mqlake.store.append.message import Message
from tests import simulated
from tests.broker.consuming import Consumer, subscription
from tests.broker.lane.pull_lanes import (
    ask_bursts,
    damage,
    pull_frame,
    pulling,
    with_kernels,
)
from tests.broker.pull.pulls import GROUP, pull_header
from tests.broker.running import Running, next_port, running

pytestmark = with_kernels

TOPICS, GROUPS, QUEUES = ("Orders", "Bills"), (GROUP, "others"), 2


Frame = tuple[bytes, list[tuple[object, ...]]]


class Answered(NamedTuple):
    """What a broker has answered, but for times, and what it then had committed."""

    answers: list[dict[int, Frame]]
    offsets: list[object]
    counts: tuple[int, int, int]


def without_times(frame: bytes) -> Frame:
    """Return the beginning of a frame, and its records without times, and what depends on them."""
    body_at = 8 + int.from_bytes(frame[5:8])
    records, rest = list[tuple[object, ...]](), frame[body_at:]
    while rest:
        one = record.decode(rest)
        place = one.topic, one.queue_id, one.queue_offset, one.physical_offset
        records.append((*place, one.body, one.tags))
        rest = rest[one.size :]
    return frame[:body_at], records


class RandomLife:
    """Random operations on a broker, the same for each that is created with the same seed."""

    def __init__(self, broker: Running, seed: int) -> None:
        self.broker, self.dice = broker, random.Random(seed)
        self.consumer = Consumer(broker)
        self.opaque = 0
        self.answers: list[dict[int, Frame]] = []
        self.offsets: list[object] = []
        self.places: dict[tuple[str, str, int], int] = {}

    async def put(self) -> None:
        dice, store = self.dice, self.broker.state.store
        messages = [
            Message(
                dice.choice(TOPICS),
                dice.randbytes(dice.choice((1, 50, 1000))),
                tags=f"t{number % 3}",
                queue_id=dice.randrange(QUEUES),
            )
            for number in range(dice.randint(1, 150))
        ]
        await store.put_many(messages)
        # Otherwise the greatest offset of an answer depends on when messages are dispatched.
        store.core.tick()  # type: ignore[attr-defined]

    def _frames(self) -> list[bytes]:
        dice, frames = self.dice, list[bytes]()
        topic, group, queue_id = dice.choice(TOPICS), dice.choice(GROUPS), dice.randrange(QUEUES)
        kind, key = dice.choice(list(Serialization)), (group, topic, queue_id)
        most, has_own = dice.choice((1, 32, 32, 50)), dice.random() < 0.6
        flags = (HAS_SUBSCRIPTION if has_own else 0) | dice.choice((0, COMMITS_OFFSET))
        expression = dice.choice(("*", "*", "t1", "t0||t2")) if has_own else None
        offset = self.places.get(key, 0)
        for _ in range(dice.randint(1, 8)):
            header = pull_header(
                offset,
                consumer_group=group,
                topic=topic,
                queue_id=queue_id,
                max_msg_nums=most,
                sys_flag=flags,
                subscription=expression,
                commit_offset=dice.choice((0, offset, offset, offset + 9)),
            )
            frames.append(pull_frame(self.opaque, int(kind), header))
            self.opaque += 1
            offset += most
        self.places[key] = offset if dice.random() < 0.5 else dice.randrange(60)
        return frames

    async def pull(self) -> None:
        bursts = [self._frames() for _ in range(self.dice.randint(1, 6))]
        answers = await ask_bursts(self.broker, bursts)
        self.answers.append({opaque: without_times(one) for opaque, one in answers.items()})
        offsets = self.broker.state.store.config.consumer_offsets
        for group in GROUPS:
            for topic in TOPICS:
                for queue_id in range(QUEUES):
                    found = offsets.query(group, topic, queue_id)
                    self.offsets.append((found, offsets.query_pull(group, topic, queue_id)))

    async def change_topic(self) -> None:
        perm = self.dice.choice((PERM_READ | PERM_WRITE,) * 4 + (PERM_WRITE,))
        queues = self.dice.choice((QUEUES, QUEUES, 1))
        name = self.dice.choice(TOPICS)
        flag = self.dice.choice((0, 0, 7))
        topic = Topic(name, queues, QUEUES, perm=perm, topic_sys_flag=flag)
        self.broker.state.topics.put(topic)

    async def change_group(self) -> None:
        name, dice = self.dice.choice(GROUPS), self.dice
        enabled = dice.random() < 0.8
        group = SubscriptionGroup(group_name=name, consume_enable=enabled)
        self.broker.state.groups.put(group)
        self.broker.state.groups.forbid(
            name, dice.choice(TOPICS), dice.choice((0, 0, 0, PERM_READ))
        )

    async def subscribe(self) -> None:
        dice = self.dice
        chosen = [topic for topic in TOPICS if dice.random() < 0.8]
        expressions = "*", "t1", "t0 || t1"
        subscriptions = [
            subscription(topic, dice.choice(expressions), self.opaque) for topic in chosen
        ]
        model = dice.choice(("CLUSTERING",) * 4 + ("BROADCASTING",))
        await self.consumer.beat(dice.choice(GROUPS), *subscriptions, messageModel=model)

    async def change_settings(self) -> None:
        live, dice = self.broker.runtime.live, self.dice
        changed = msgspec.structs.replace(
            live.now,
            max_transfer_count_on_message_in_memory=dice.choice((32, 32, 5)),
            max_transfer_bytes_on_message_in_memory=dice.choice((1 << 18, 1 << 18, 900)),
            broker_permission=dice.choice((6, 6, 6, 6, PERM_WRITE)),
            use_server_side_reset_offset=dice.random() < 0.5,
            correct_offset_past_end=dice.random() < 0.5,
        )
        live.replace(changed)

    async def reset(self) -> None:
        dice, offsets = self.dice, self.broker.state.store.config.consumer_offsets
        place = dice.choice(GROUPS), dice.choice(TOPICS), dice.randrange(QUEUES)
        offsets.reset(*place, dice.randrange(50))

    async def delete_group(self) -> None:
        name = self.dice.choice(GROUPS)
        self.broker.state.groups.remove(name)

    async def delete_topic(self) -> None:
        name = self.dice.choice(TOPICS)
        self.broker.state.topics.remove(name)
        await self.broker.state.store.removals.remove(name)
        self.broker.state.topics.put(Topic(name, QUEUES, QUEUES))

    async def remove_segment(self) -> None:
        core: Any = self.broker.state.store.core  # type: ignore[attr-defined]
        if core.log.remove_first() is not None:
            core.queues.trim(core.log.min_offset)

    async def damage_file(self) -> None:
        if self.dice.random() < 0.3:
            damage(self.broker, self.dice)

    async def live(self, count: int) -> Answered:
        seldom = (
            self.change_topic,
            self.change_group,
            self.change_settings,
            self.reset,
            self.delete_group,
            self.delete_topic,
            self.remove_segment,
            self.damage_file,
        )
        for name in TOPICS:
            self.broker.state.topics.put(Topic(name, QUEUES, QUEUES))
        for group in GROUPS:
            subscriptions = [subscription(topic) for topic in TOPICS]
            await self.consumer.beat(group, *subscriptions)
        for _ in range(count):
            work = self.dice.choice((self.put, self.pull, self.pull, self.pull, None))
            if work is None:
                work = self.dice.choice((*seldom, self.subscribe))
            await work()
        stats = self.broker.state.stats
        await self.consumer.close()
        return Answered(self.answers, self.offsets, (stats.got_total, stats.pulls, stats.missed))


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(each, marks=pytest.mark.nightly) for each in range(3, 20))]
)
def test_whatever_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    settings = {
        "listenPort": next_port(),
        "mappedFileSizeConsumeQueue": 20 * 300,
        "mappedFileSizeCommitLog": 60_000,
    }
    found: list[Answered] = []
    served: list[bytes] = []

    async def main(is_on: bool) -> None:
        path = tmp_path / str(is_on)
        async with AsyncExitStack() as stack:
            if is_on:
                pulls = pulling(path, monkeypatch, **settings)
                broker, lane = await stack.enter_async_context(pulls)
                served.extend(lane.served)
                lane.served = served
            else:
                monkeypatch.setenv("MQLAKE_LANE", "off")
                broker = await stack.enter_async_context(running(path, None, **settings))
            found.append(await RandomLife(broker, seed).live(250))

    for is_on in (True, False):
        with monkeypatch.context() as patch:
            del patch
            simulated.run(main(is_on))
        monkeypatch.delenv("MQLAKE_LANE", raising=False)
    assert len(found[0].answers) == len(found[1].answers)
    for number, (on, off) in enumerate(zip(found[0].answers, found[1].answers, strict=True)):
        assert on.keys() == off.keys()
        for opaque, frame in on.items():
            assert frame == off[opaque], f"number {number}: {frame[0]!r} {off[opaque][0]!r}"
    assert found[0] == found[1]
    assert len(served) > 100
