"""The lane puts messages to lite topics as the ordinary path does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.lane import lane as lane_module
from mqlake.broker.lane import layout, seats
from mqlake.broker.lane.choice import is_chosen
from mqlake.broker.state.lite import queues as queues_module
from mqlake.broker.state.lite.names import queue_name
from mqlake.formats.config.topics import Topic
from mqlake.formats.record import decode
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.admin import TopicNameHeader
from mqlake.remoting.connection import Peer
from mqlake.storage.clock import SystemClock
from mqlake.store.light.light_queues import LightPlace
from tests.broker.lane.lanes import lane_of, served, with_lane
from tests.broker.lane.pull_lanes import pull_frame
from tests.broker.lane.raw_client import KINDS, RawClient
from tests.broker.lite.lites import TOPIC, LiteClient, make_group
from tests.broker.pull.pulls import pull_header
from tests.broker.running import PATIENCE, Running, running
from tests.broker.send.bursts import ask_bursts, in_bursts
from tests.broker.send.random_sends import BATCH_FIELDS, KEY, batch, made
from tests.broker.send.streams import warm
from tests.protocol.messages import SEND_FIELDS
from tests.store.record_crcs import record_bytes
from tests.until import until

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

FIELDS = SEND_FIELDS | {"b": TOPIC, "e": "0"}
SETTINGS: dict[str, Any] = {"enableLmq": True, "mappedFileSizeCommitLog": 1 << 22}


def lite(name: str, body: str, kind: int = 0, opaque: int = 7, **fields: str) -> bytes:
    """Return a usual send to a lite topic."""
    properties = f"{KEY}__LITE_TOPIC\1{name}\2"
    return made(kind, FIELDS | {"i": properties} | fields, body.encode(), opaque)


def unusual(name: str, body: str) -> bytes:
    """Return a send to a lite topic that the lane leaves, since it has no unique key."""
    return lite(name, body, i=f"__LITE_TOPIC\1{name}\2")


@asynccontextmanager
async def lite_lane(path: Path, **settings: Any) -> AsyncIterator[tuple[Running, list[int]]]:
    """Run a broker with a lane, a parent topic and a group."""
    async with with_lane(path, **(SETTINGS | settings)) as (broker, calls):
        broker.state.topics.put(Topic(TOPIC, attributes={"message.type": "LITE"}))
        make_group(broker, "agents")
        yield broker, calls


async def joined(broker: Running, calls: list[int], name: str = "joins") -> RawClient:
    """Return a connection that the lane reads."""
    client = await RawClient.connect(broker)

    async def is_served() -> bool:
        before = served(calls)
        await client.ask(lite(name, "first"))
        return served(calls) > before

    while not await is_served():
        pass
    return client


def queue_of(broker: Running, name: str) -> list[tuple[int, str]]:
    """Return the queue offsets and the bodies of a lite topic's messages."""
    broker.state.store.reads.catch_up()
    found = broker.state.lite.queues.read(TOPIC, queue_name(TOPIC, name), 0, 10_000, 1 << 30)
    return [(each.queue_offset, decode(each.record).body.decode()) for each in found]


def codes(answers: list[Command]) -> set[int]:
    return {answer.code for answer in answers}


# The same as the ordinary path


def random_lite(dice: random.Random, kind: int, opaque: int) -> bytes:
    """Return a send to a lite topic, perhaps an unusual or a refused one, or another send."""
    name = f"s-{dice.randrange(dice.choice((3, 60)))}"
    pair = f"__LITE_TOPIC\1{name}\2"
    properties = dice.choices(
        (
            *(f"{KEY}{pair}", f"KEYS\1k\2{KEY}{pair[:-1]}", f"{pair}{KEY}WAIT\1true"),
            *(KEY, f"{pair}KEYS\1k\2{KEY}{pair}", f"{KEY}{pair}__LITE_TOPIC\1other\2"),
            *(f"{KEY}__LITE_TOPIC\1a b\2", f"{KEY}{pair}DELAY\0011\2", f"{KEY}__LITE_TOPIC\1\2"),
            *(f"{KEY}KEYS\1__LITE_TOPIC\1x\2{pair}", f"KEYS\1{'k' * 27_000}\2{KEY}{pair}"),
            *(
                f"KEYS\1{'k' * dice.randrange(26_000, 31_000)}\2{KEY}{pair}",
                f"KEYS\1ü\2{KEY}{pair}",
            ),
            *(f"{KEY}{pair}INNER_MULTI_DISPATCH\1%LMQ%$a$b\2", f"{KEY}TRAN_MSG\1false\2{pair}"),
        ),
        (9, 6, 6, 6, *([1] * 11)),
    )[0]
    topic = dice.choices((TOPIC, "TopicTest", "%DLQ%agents"), (8, 2, 1))[0]
    fields = SEND_FIELDS | {"b": topic, "e": str(dice.randrange(4)), "i": properties}
    body = dice.randbytes(dice.choice((1, 90, 400)))
    if dice.random() < 0.05:
        return batch(BATCH_FIELDS | {"b": topic, "i": properties}, body, opaque, kind)
    return made(kind, fields, body, opaque)


class StandingClock(SystemClock):
    """A clock whose time of day stands still."""

    def milliseconds(self) -> int:
        return 1_800_000_000_000


def same_parts(record: bytes) -> bytes:
    """Return the bytes of a record without both ports and the CRC of all of it."""
    return record[:52] + record[56:68] + record[72 : record.rindex(b"__CRC32#")]


async def put_all(broker: Running, bursts: list[list[bytes]]) -> tuple[Any, ...]:
    """Return the codes of the answers, and the next offset of each lite topic's queue."""
    broker.state.topics.put(Topic(TOPIC, attributes={"message.type": "LITE"}))
    broker.state.topics.put(Topic("%DLQ%agents"))
    answers = await ask_bursts(broker, bursts)
    broker.state.store.reads.catch_up()
    names = [queue_name(TOPIC, f"s-{number}") for number in range(60)]
    ends = [broker.state.lite.queues.max_offset(TOPIC, name) for name in names]
    following = [broker.state.lite.queues.take_offset(TOPIC, name, int).offset for name in names]
    assert ends == following
    return len(answers), ends, broker.state.lite.room.count()


@pytest.mark.parametrize("seed", range(3))
def test_the_log_has_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    bursts = in_bursts(random.Random(seed), 1000, random_lite)
    monkeypatch.setattr(seats, "_MOST_OTHERS", 1 << 30)
    clock = StandingClock()

    async def with_it() -> tuple[Any, ...]:
        async with with_lane(tmp_path / "lane", **SETTINGS, clock=clock) as (broker, calls):
            found = await put_all(broker, bursts)
            assert served(calls) > 300
            assert layout.NEW_LITE in calls[::2]
            return found

    async def without() -> tuple[Any, ...]:
        async with running(tmp_path / "ordinary", clock=clock, **SETTINGS) as broker:
            await warm(broker)
            return await put_all(broker, bursts)

    found = asyncio.run(with_it())
    monkeypatch.setenv("MQLAKE_LANE", "off")
    assert asyncio.run(without()) == found
    pairs = zip(record_bytes(tmp_path / "lane"), record_bytes(tmp_path / "ordinary"), strict=True)
    count = 0
    for (record, _), (expected, _) in pairs:
        assert same_parts(record) == same_parts(expected)
        count += 1
    assert count > 600


# No message is lost


@pytest.mark.parametrize("kind", KINDS)
def test_sends_of_both_paths_get_ascending_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    monkeypatch.setattr(seats, "_MOST_OTHERS", 1 << 30)

    async def run() -> None:
        async with lite_lane(tmp_path) as (broker, calls):
            first, second = await joined(broker, calls), await joined(broker, calls)
            sent = 0
            for _ in range(30):
                # Those of one connection arrive together: unusual ones wait to be put.
                for client in (first, second, first):
                    frames = [
                        unusual("a", str(sent + number))
                        if number % 3 == 1
                        else lite("a", str(sent + number), kind)
                        for number in range(5)
                    ]
                    client.writer.write(b"".join(frames))
                    sent += 5
                found = await first.answers(10) + await second.answers(5)
                assert codes(found) == {ResponseCode.SUCCESS}
            # What follows an unusual send is passed on with it.
            assert served(calls) > sent // 10
            found = queue_of(broker, "a")
            assert [offset for offset, _ in found] == list(range(sent))
            assert sorted(int(body) for _, body in found) == list(range(sent))

    asyncio.run(run())


@pytest.mark.parametrize("is_joined", [True, False], ids=["read by the lane", "by transports"])
def test_what_has_an_offset_is_put_before_the_lane_puts_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_joined: bool
) -> None:
    """The ordinary path takes an offset, and puts the message later. If the lane put the next one
    first, the message would be left out of its queue: it would be lost.
    """
    if not is_joined:
        monkeypatch.setattr(seats.Seats, "enter", lambda *_: None)

    async def run() -> None:
        async with lite_lane(tmp_path) as (broker, calls):
            client, other = await joined(broker, calls, "a"), await RawClient.connect(broker)
            begin, sends = len(queue_of(broker, "a")), lane_of(broker)._sends  # type: ignore[attr-defined]
            for number in range(5):
                with monkeypatch.context() as patch:
                    patch.setattr(Peer, "after_part", lambda *_: None)
                    other.writer.write(unusual("a", f"waits {number}"))
                    await until(lambda: len(sends._messages) == 1)
                before = served(calls)
                (answer,) = await client.ask(lite("a", f"follows {number}"))
                assert answer.code == ResponseCode.SUCCESS
                assert served(calls) == before + 1
                assert codes(await other.answers(1)) == {ResponseCode.SUCCESS}
            expected = [f"{what} {number}" for number in range(5) for what in ("waits", "follows")]
            assert queue_of(broker, "a")[begin:] == list(enumerate(expected, begin))

    asyncio.run(run())


def test_a_refused_put_takes_no_offset(tmp_path: Path) -> None:
    """Records that do not fit into the last file of the log are put by the ordinary path."""

    async def run() -> None:
        async with lite_lane(tmp_path, mappedFileSizeCommitLog=1 << 16) as (broker, calls):
            client = await joined(broker, calls)
            for begin in range(0, 400, 20):
                numbers = range(begin, begin + 20)
                found = await client.ask(
                    *(lite("a", str(number) + "x" * 900) for number in numbers)
                )
                assert codes(found) == {ResponseCode.SUCCESS}
            assert served(calls) > 100
            assert [offset for offset, _ in queue_of(broker, "a")] == list(range(400))
            assert broker.state.store.watermarks.end > 5 << 16

    asyncio.run(run())


def test_offsets_continue_after_a_restart(tmp_path: Path) -> None:
    async def run(first: int) -> None:
        async with lite_lane(tmp_path) as (broker, calls):
            client = await joined(broker, calls, f"joins-{first}")
            for number in range(first, first + 3):
                await client.ask(*(lite(f"s{name}", f"{number}") for name in range(20)))
            assert calls[::2].count(layout.NEW_LITE) == 21
            for name in range(20):
                expected = [(number, str(number)) for number in range(first + 3)]
                assert queue_of(broker, f"s{name}") == expected

    asyncio.run(run(0))
    asyncio.run(run(3))


def test_offsets_stay_known_while_tables_grow_and_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues_module, "_KEPT", 40)

    async def run() -> None:
        async with lite_lane(tmp_path) as (broker, calls):
            client, dice = await joined(broker, calls), random.Random(1)
            sent = {f"s{number}": list[str]() for number in range(300)}
            for turn in range(60):
                names = dice.choices(list(sent)[: 5 * turn + 10], k=30)
                frames = [
                    (unusual if dice.random() < 0.02 else lite)(name, f"{turn}-{at}")
                    for at, name in enumerate(names)
                ]
                for at, name in enumerate(names):
                    sent[name].append(f"{turn}-{at}")
                assert codes(await client.ask(*frames)) == {ResponseCode.SUCCESS}
            assert served(calls) > 500
            for name, bodies in sent.items():
                assert queue_of(broker, name) == list(enumerate(bodies))

    asyncio.run(run())


@pytest.mark.parametrize("path", ["lane", "ordinary path"])
def test_no_offset_is_given_again_while_dispatch_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """The first table is full while messages of it are put of which the log does not know yet, or
    while they wait to be put. Then one of these is dispatched, and the second table is full.
    """
    monkeypatch.setattr(queues_module, "_KEPT", 40)
    monkeypatch.setattr(lane_module, "_TURN", int(PATIENCE * 1e9))

    async def put(broker: Running, client: RawClient) -> None:
        async def send(numbers: range, body: str) -> None:
            found = await client.ask(*(lite(f"s{number}", body) for number in numbers))
            assert codes(found) == {ResponseCode.SUCCESS}

        store, light = broker.state.store, broker.state.store.light
        store.reads.catch_up()
        marks, kind, ends = store.watermarks, type(light), [store.watermarks.end]
        make_room, last_of = queues_module.LiteQueues._make_room, kind.last_of

        def note_end(queues: Any, put_end: int) -> None:
            if queues.is_full:
                ends.append(marks.end)
            make_room(queues, put_end)

        def dispatched(_: object = None) -> int:
            return ends[0] if len(ends) == 1 else ends[1] + 1

        def last_dispatched(*wanted: Any) -> LightPlace | None:
            found = last_of(*wanted)
            return found if found and found.physical_offset < dispatched() else None

        with monkeypatch.context() as patch:
            patch.setattr(queues_module.LiteQueues, "_make_room", note_end)
            patch.setattr(type(marks), "dispatched", property(dispatched))
            patch.setattr(kind, "last_of", last_dispatched)
            for begin in range(0, 240, 60):
                await send(range(begin, begin + 60), "one")
                store.reads.catch_up()
            assert len(ends) > 2
            await send(range(240), "two")
        for number in range(240):
            assert queue_of(broker, f"s{number}") == [(0, "one"), (1, "two")]

    async def in_lane() -> None:
        async with lite_lane(tmp_path) as (broker, calls):
            await put(broker, await joined(broker, calls))
            assert served(calls) > 480

    async def otherwise() -> None:
        monkeypatch.setenv("MQLAKE_LANE", "off")
        async with running(tmp_path, **SETTINGS) as broker:
            broker.state.topics.put(Topic(TOPIC, attributes={"message.type": "LITE"}))
            await put(broker, await RawClient.connect(broker))
            await RawClient.close_all()

    asyncio.run(in_lane() if path == "lane" else otherwise())


# Answers


PULL = 1000
"""The opaque of pulls."""


def numbered(names: Sequence[str]) -> list[bytes]:
    """Return a send to each of these lite topics, with ascending opaques."""
    return [lite(name, str(opaque), opaque=opaque) for opaque, name in enumerate(names)]


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_answers_to_known_and_new_lite_topics_come_in_order(tmp_path: Path, flush: str) -> None:
    async def run() -> None:
        async with lite_lane(tmp_path, flushDiskType=flush) as (broker, calls):
            client, dice = await joined(broker, calls), random.Random(1)
            for turn in range(20):
                names = [f"s{dice.randrange(20 * turn + 20)}" for _ in range(50)]
                pulls = [pull_frame(PULL, 0, pull_header(topic="TopicTest"))] * (turn % 3)
                found = await client.ask(*numbered(names), *pulls)
                sends = [each for each in found if each.opaque != PULL]
                assert [each.opaque for each in sends] == list(range(50))
                assert codes(sends) == {ResponseCode.SUCCESS}
            assert served(calls) > 900
            assert calls[::2].count(layout.NEW_LITE) > 200

    asyncio.run(run())


def test_new_lite_topics_are_answered_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel sends the answers of a burst at once, however often it asks meanwhile."""

    async def run() -> None:
        async with lite_lane(tmp_path) as (broker, calls):
            client = await joined(broker, calls)
            sent = list[int]()
            peer_send = Peer.send
            monkeypatch.setattr(Peer, "send", lambda *given: (sent.append(1), peer_send(*given))[1])
            monkeypatch.setattr(lane_module, "_TURN", int(PATIENCE * 1e9))
            del calls[:]
            found = await client.ask(*numbered([f"s{number}" for number in range(100)]))
            assert [each.opaque for each in found] == list(range(100))
            assert calls[::2].count(layout.NEW_LITE) == 100
            assert not sent

    asyncio.run(run())


def test_a_refusal_between_two_sends_keeps_the_order_of_their_answers(tmp_path: Path) -> None:
    async def run() -> None:
        limits = {"maxLmqConsumeQueueNum": 5, "maxAddressShare": 100}
        async with lite_lane(tmp_path, **limits) as (broker, calls):
            client, other = await joined(broker, calls), await joined(broker, calls)
            known = ["joins", "s0", "joins", "s1"]
            for round_ in range(5):
                # From the second round on, all but the known ones are refused.
                new = [f"{round_}-{number}" for number in range(3)]
                names = [*known, new[0], *known, new[1], new[2], "joins"]
                other.write(b"".join(numbered(names)))
                found = await client.ask(*numbered(names))
                theirs = await other.answers(len(names))
                for answers in (found, theirs):
                    assert sorted(each.opaque for each in answers) == list(range(len(names)))
                    accepted = [each.opaque for each in answers if not each.code]
                    assert accepted == sorted(accepted)
                refused = {names[each.opaque] for each in found if each.code}
                assert refused <= set(new)
                assert {each.code for each in found if each.code} <= {
                    ResponseCode.LMQ_QUOTA_EXCEEDED
                }
                assert len(refused) == (3 if round_ else 1)

    asyncio.run(run())


# Decisions


def test_a_broker_without_lite_topics_refuses(tmp_path: Path) -> None:
    async def run() -> None:
        async with lite_lane(tmp_path, enableLmq=False) as (broker, _):
            client = await RawClient.connect(broker)
            for _ in range(5):
                (answer,) = await client.ask(lite("a", "x"))
                assert answer.code == ResponseCode.MESSAGE_ILLEGAL
                assert "enableLmq" in (answer.remark or "")

    asyncio.run(run())


def test_the_limit_of_lite_topics_holds(tmp_path: Path) -> None:
    async def run() -> None:
        async with lite_lane(tmp_path, maxLmqConsumeQueueNum=10, maxAddressShare=100) as (
            broker,
            calls,
        ):
            client = await joined(broker, calls)
            found = [(await client.ask(lite(f"s{number}", "x")))[0] for number in range(20)]
            refused = [answer.code == ResponseCode.LMQ_QUOTA_EXCEEDED for answer in found]
            assert refused == [False] * 9 + [True] * 11
            live = broker.runtime.live
            live.replace(msgspec.structs.replace(live.now, max_lmq_consume_queue_num=11))
            assert (await client.ask(lite("s10", "x")))[0].code == ResponseCode.SUCCESS
            assert queue_of(broker, "s10") == [(0, "x")]

    asyncio.run(run())


def test_offsets_begin_again_after_the_parent_topic_was_deleted(tmp_path: Path) -> None:
    async def run() -> None:
        async with lite_lane(tmp_path) as (broker, calls):
            client = await joined(broker, calls)
            await client.ask(*(lite("a", "before") for _ in range(3)))
            deleted = await broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader(TOPIC))
            assert deleted.code == ResponseCode.SUCCESS
            broker.state.topics.put(Topic(TOPIC, attributes={"message.type": "LITE"}))
            await client.ask(*(lite("a", "after") for _ in range(2)))
            assert queue_of(broker, "a") == [(0, "after"), (1, "after")]

    asyncio.run(run())


def test_no_offset_is_given_while_messages_of_an_earlier_role_wait_for_dispatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with lite_lane(tmp_path) as (broker, calls):
            client = await joined(broker, calls)
            await client.ask(lite("a", "0"))
            queues, marks = broker.state.lite.queues, broker.state.store.watermarks
            broker.state.store.reads.catch_up()
            with monkeypatch.context() as patch:
                patch.setattr(type(marks), "dispatched", property(lambda _: 0))
                queues.forget_all()
                (answer,) = await client.ask(lite("a", "refused"))
                assert answer.code == ResponseCode.SYSTEM_BUSY
            assert codes(await client.ask(lite("a", "1"))) == {ResponseCode.SUCCESS}
            assert queue_of(broker, "a") == [(0, "0"), (1, "1")]

    asyncio.run(run())


def test_consumers_get_what_the_lane_has_put(tmp_path: Path) -> None:
    async def run() -> None:
        async with lite_lane(tmp_path) as (broker, calls):
            client, consumer = await joined(broker, calls), LiteClient(broker)
            await consumer.change("PARTIAL_ADD", "a")
            await client.ask(lite("a", "one"), lite("b", "other"), lite("a", "two"))
            broker.state.store.reads.catch_up()
            assert await consumer.bodies() == ["one", "two"]

    asyncio.run(run())
