"""Pulls that the lane serves are answered as if each was checked and read by itself."""

from __future__ import annotations

import asyncio
import errno
import random
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.lane import pull_layout
from mqlake.broker.lane import pulls as lane_pulls
from mqlake.broker.lane.pulls import LanePulls
from mqlake.broker.pull import requests
from mqlake.errors import DiskError
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ, PERM_WRITE
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Serialization
from mqlake.protocol.headers.clients import UnregisterClientHeader
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION
from mqlake.store.reads import mapped_files
from mqlake.store.reads.mapped_files import MappedFiles
from tests import simulated
from tests.broker.consuming import Consumer, subscription
from tests.broker.lane.pull_lanes import (
    all_queues,
    ask_bursts,
    committed,
    fill_store,
    in_bursts,
    pull_counts,
    pull_frame,
    pulling,
    pulls_of,
    random_pulls,
    with_kernels,
)
from tests.broker.pull.pulls import GROUP, fill, numbers, pull, pull_header
from tests.broker.running import PATIENCE, Running, running

pytestmark = with_kernels

BIG_FILES = {"mappedFileSizeConsumeQueue": 20_000}


@pytest.mark.parametrize("seed", range(3))
def test_it_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    async def main() -> None:
        dice = random.Random(seed)
        # What a pull past the end is answered depends on what others have committed before.
        fields = {"mappedFileSizeConsumeQueue": 20 * 900, "correctOffsetPastEnd": False}
        async with pulling(tmp_path, monkeypatch, **fields) as (broker, lane):
            await fill_store(broker, dice, 6000)
            queues = all_queues(broker)
            bursts = in_bursts(dice, random_pulls(dice, 1200, queues))
            found: list[tuple[Any, ...]] = []
            for is_on in (False, True):
                with monkeypatch.context() as patch:
                    if not is_on:
                        patch.setattr(LanePulls, "_take", lambda *_: 0)
                    before = pull_counts(broker.state)
                    answers = await ask_bursts(broker, bursts)
                    after = pull_counts(broker.state)
                counts = [new - old for new, old in zip(after, before, strict=True)]
                found.append((answers, counts, committed(broker.state, queues)))
                assert bool(lane.served) == is_on
            assert found[0] == found[1]
            assert len(lane.served) > 300

    asyncio.run(main())


async def pull_steps(by: Running | Consumer, first: int, count: int, **fields: Any) -> int:
    """Pull steps of 32 that follow each other; return the offset after them."""
    for number in range(first, first + count):
        found = await pull(by, number * 32, **fields)
        assert found.bodies == numbers(number * 32, number * 32 + 32)
    return (first + count) * 32


Change = Callable[[Running, Consumer], Awaitable[object]]


async def close_group(broker: Running, _: Consumer) -> None:
    broker.state.groups.put(SubscriptionGroup(group_name=GROUP, consume_enable=False))


async def close_topic(broker: Running, _: Consumer) -> None:
    topic = broker.state.topics.get("Orders")
    assert topic is not None
    broker.state.topics.put(msgspec.structs.replace(topic, perm=PERM_WRITE))


async def close_broker(broker: Running, _: Consumer | None = None) -> None:
    settings = msgspec.structs.replace(broker.runtime.settings, broker_permission=PERM_WRITE)
    broker.runtime.live.replace(settings)


async def forbid(broker: Running, _: Consumer) -> None:
    broker.state.groups.forbid(GROUP, "Orders", PERM_READ)


async def leave(_: Running, consumer: Consumer) -> None:
    header = UnregisterClientHeader(client_id=consumer.client_id, consumer_group=GROUP)
    await consumer.ask(RequestCode.UNREGISTER_CLIENT, header)


async def subscribe_anew(_: Running, consumer: Consumer) -> None:
    await consumer.beat(GROUP, subscription("Others"))


async def broadcast(_: Running, consumer: Consumer) -> None:
    await consumer.beat(GROUP, subscription("Orders"), messageModel="BROADCASTING")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (close_group, ResponseCode.NO_PERMISSION),
        (close_topic, ResponseCode.NO_PERMISSION),
        (close_broker, ResponseCode.NO_PERMISSION),
        (forbid, ResponseCode.NO_PERMISSION),
        (leave, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        (subscribe_anew, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        (broadcast, ResponseCode.NO_PERMISSION),
    ],
)
def test_what_has_changed_is_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, code: int
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            group = SubscriptionGroup(group_name=GROUP, consume_broadcast_enable=False)
            broker.state.groups.put(group)
            consumer = Consumer(broker)
            await consumer.beat(GROUP, subscription("Orders"))
            offset = await pull_steps(consumer, 0, 6, sys_flag=0, subscription=None)
            assert len(lane.served) == 6
            await consumer.beat(GROUP, subscription("Orders"))
            await change(broker, consumer)
            found = await pull(consumer, offset, sys_flag=0, subscription=None)
            assert (found.code, found.records) == (code, [])
            assert len(lane.served) == 6
            await consumer.close()

    simulated.run(main())


def test_a_new_subscription_selects_other_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            consumer = Consumer(broker)
            await consumer.beat(GROUP, subscription("Orders", "t1"))
            for offset in (0, 96, 192):
                found = await pull(consumer, offset, sys_flag=0, subscription=None)
                assert found.bodies == numbers(offset + 1, offset + 96, 3)
            await consumer.beat(GROUP, subscription("Orders", "t0 || t1", 2))
            found = await pull(consumer, 0, sys_flag=0, subscription=None)
            assert found.bodies == sorted((*numbers(0, 48, 3), *numbers(1, 48, 3)), key=int)
            assert len(lane.served) == 4
            await consumer.close()

    simulated.run(main())


def test_a_reset_comes_before_what_was_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            offset = await pull_steps(broker, 0, 6)
            assert len(lane.served) == 6
            broker.state.store.config.consumer_offsets.reset(GROUP, "Orders", 0, 17)
            found = await pull(broker, offset)
            assert (found.code, found.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
            assert found.offsets.next_begin_offset == 17
            assert (await pull(broker, 17)).bodies == numbers(17, 49)
            assert len(lane.served) == 7

    simulated.run(main())


def test_settings_take_effect_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            offset = await pull_steps(broker, 0, 6)
            changed = msgspec.structs.replace(
                broker.runtime.settings, max_transfer_count_on_message_in_memory=3
            )
            broker.runtime.live.replace(changed)
            assert (await pull(broker, offset)).bodies == numbers(offset, offset + 3)
            assert len(lane.served) == 7

    simulated.run(main())


def test_a_topic_that_was_created_again_has_nothing_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            offset = await pull_steps(broker, 0, 6)
            assert lane.served
            await broker.state.store.removals.remove("Orders")
            await fill(broker, 600, start=1000)
            first = broker.state.store.reads.queue("Orders", 0).min_offset
            for at in (offset, first, first + offset):
                assert not set((await pull(broker, at)).bodies) & set(numbers(0, 600))
            assert (await pull(broker, first)).bodies == numbers(1000, 1032)

    simulated.run(main())


def test_messages_that_retention_removed_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        files = BIG_FILES | {"mappedFileSizeCommitLog": 60_000}
        async with pulling(tmp_path, monkeypatch, **files) as (broker, lane):
            await fill(broker, 1000)
            offset = await pull_steps(broker, 0, 6)
            assert len(lane.served) == 6
            store: Any = broker.state.store.core
            while store.reads.queue("Orders", 0).min_offset <= offset:
                assert store.log.remove_first() is not None
                store.queues.trim(store.log.min_offset)
            found = await pull(broker, offset)
            assert (found.code, found.remark) == (
                ResponseCode.PULL_OFFSET_MOVED,
                "OFFSET_TOO_SMALL",
            )
            assert len(lane.served) == 6

    simulated.run(main())


def test_removed_files_are_mapped_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        files = BIG_FILES | {"mappedFileSizeCommitLog": 60_000, "fileReservedTime": 0}
        async with pulling(tmp_path, monkeypatch, **files) as (broker, _):
            await fill(broker, 1000)
            await pull_steps(broker, 0, 6)
            mapped, store = broker.state.store.reads.mapped, broker.state.store
            assert mapped.count
            core: Any = store.core  # type: ignore[attr-defined]
            core.retention._waiting = 1
            assert core.retention.remove_next() is not None
            assert mapped.count == 0

    simulated.run(main())


def test_light_pulls_are_checked_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        files = BIG_FILES | {"litePullMessageEnable": False}
        async with pulling(tmp_path, monkeypatch, **files) as (broker, lane):
            await fill(broker, 600)
            offset = await pull_steps(broker, 0, 6)
            assert lane.served
            answer = await broker.ask(RequestCode.LITE_PULL_MESSAGE, pull_header(offset))
            assert (answer.code, bytes(answer.body)) == (ResponseCode.NO_PERMISSION, b"")

    simulated.run(main())


def test_new_messages_are_served_as_soon_as_they_are_dispatched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            for start in range(0, 500, 10):
                await fill(broker, 10, start=start)
                found = await pull(broker, start)
                assert found.bodies == numbers(start, start + 10)
                assert found.offsets.max_offset == start + 10
                at_end = await pull(broker, start + 10)
                assert at_end.code == ResponseCode.PULL_NOT_FOUND
            assert len(lane.served) == 50

    simulated.run(main())


def test_pulls_that_the_disk_must_serve_are_left_to_the_ordinary_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            with monkeypatch.context() as patch:
                patch.setattr(mapped_files.WarmUp, "job", lambda *_: wait)
                patch.setattr(requests, "warm_up", lambda *_: wait)
                waiting = asyncio.create_task(pull(broker, 64))
                assert await asyncio.to_thread(begun.wait, PATIENCE)
                await close_broker(broker)
                go_on.set()
                assert (await waiting).bodies == numbers(64, 96)
            assert (await pull(broker, 96)).code == ResponseCode.NO_PERMISSION
            assert not lane.served

    asyncio.run(main())


def test_a_file_that_may_be_dropped_is_read_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place in memory is forgotten before another file of the queue is looked for in vain."""

    async def main() -> None:
        files = {"mappedFileSizeConsumeQueue": 20 * 64}
        async with pulling(tmp_path, monkeypatch, **files) as (broker, lane):
            await fill(broker, 200)
            await pull_steps(broker, 0, 2)
            tables: Any = lane.pulls.tables
            rows = tables.arrays.queues[: len(tables.queues), pull_layout.GENERATION]
            assert rows.any()
            monkeypatch.setattr(MappedFiles, "look", lambda *_: None)
            await pull_steps(broker, 4, 1)
            assert not rows.any()

    asyncio.run(main())


def test_files_that_cannot_be_mapped_are_left_to_the_ordinary_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise DiskError("it cannot be read", errno.EMFILE)

    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            for name in ("look", "map_segment"):
                with monkeypatch.context() as patch:
                    patch.setattr(MappedFiles, name, fail)
                    await pull_steps(broker, 0, 6)
                    assert not lane.served
            await pull_steps(broker, 0, 6)
            assert len(lane.served) == 6

    simulated.run(main())


def test_more_files_than_are_mapped_at_one_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_files, "MOST_SEGMENTS", 2)

    async def main() -> None:
        files = BIG_FILES | {"mappedFileSizeCommitLog": 20_000}
        async with pulling(tmp_path, monkeypatch, **files) as (broker, lane):
            mapped: Any = broker.state.store.reads.mapped
            mapped._most_queues = 1
            await fill(broker, 600)
            await fill(broker, 600, queue_id=1)
            for number in range(18):
                await pull_steps(broker, number, 1)
                await pull_steps(broker, number, 1, queue_id=1)
            assert len(lane.served) > 30
            assert mapped.count <= 2
            assert len(mapped._known) == 1

    simulated.run(main())


def test_one_connection_does_not_use_up_the_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_pulls, "MOST_LEARNED", 8)

    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            broker.state.groups.put(SubscriptionGroup(group_name=GROUP))
            for number in range(50):
                await pull(broker, 0, suspend_timeout_millis=number)
            assert len(lane.pulls.tables.accepted) == 8
            other = Consumer(broker)
            await pull_steps(other, 0, 2, suspend_timeout_millis=99)
            assert len(lane.pulls.tables.accepted) == 9
            await other.close()

    simulated.run(main())


def test_decisions_are_dropped_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            monkeypatch.setattr("mqlake.broker.lane.pull_tables.MOST_DECISIONS", 20)
            for number in range(100):
                found = await pull(broker, 32, suspend_timeout_millis=number)
                assert found.bodies == numbers(32, 64)
            assert len(lane.pulls.tables.accepted) <= 20
            assert len(lane.served) == 100

    simulated.run(main())


def test_dropped_decisions_change_no_offset_of_another_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frame(number: int, offset: int, group: str) -> bytes:
        flags, kind = HAS_SUBSCRIPTION | COMMITS_OFFSET, int(Serialization.JSON)
        header = pull_header(offset, commit_offset=offset, sys_flag=flags, consumer_group=group)
        return pull_frame(number, kind, header)

    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            for group in (GROUP, "others"):
                broker.state.groups.put(SubscriptionGroup(group_name=group))
            monkeypatch.setattr("mqlake.broker.lane.pull_tables.MOST_DECISIONS", 1)
            await ask_bursts(broker, [[frame(1, 0, GROUP)]])
            # The second pull of the same receipt is new, and displaces what is known.
            await ask_bursts(broker, [[frame(2, 96, GROUP), frame(3, 32, "others")]])
            offsets = broker.state.store.config.consumer_offsets
            assert offsets.query(GROUP, "Orders", 0) == 96
            assert offsets.query("others", "Orders", 0) == 32
            assert len(lane.served) == 3

    simulated.run(main())


def test_a_lane_that_fails_leaves_all_pulls_to_the_ordinary_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            await pull_steps(broker, 0, 3)
            monkeypatch.setattr(LanePulls, "renew", lambda _: 1 // 0)
            await pull_steps(broker, 3, 3)
            assert len(lane.served) == 3

    simulated.run(main())
    assert "the lane has failed" in caplog.text


def test_pulls_are_noted_as_the_ordinary_path_notes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            flags = HAS_SUBSCRIPTION | COMMITS_OFFSET
            frames = [
                pull_frame(n, int(kind), pull_header(32 * n, commit_offset=32 * n, sys_flag=flags))
                for kind in Serialization
                for n in range(6)
            ]
            for burst in (frames[:6], frames[6:]):
                await ask_bursts(broker, [burst])
            offsets = broker.state.store.config.consumer_offsets
            assert offsets.query(GROUP, "Orders", 0) == 160
            assert offsets.query_pull(GROUP, "Orders", 0) == 192
            assert pull_counts(broker.state) == (384, 12, 0)
            assert len(lane.served) == 12
            assert broker.broker.served[RequestCode.PULL_MESSAGE] == 12

    simulated.run(main())


def test_a_decision_is_learned_at_the_second_pull_since_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        lanes = pulling(tmp_path, monkeypatch, learns_at_once=False, **BIG_FILES)
        async with lanes as (broker, lane):
            await fill(broker, 600)
            broker.state.groups.put(SubscriptionGroup(group_name=GROUP))
            offset = await pull_steps(broker, 0, 3)
            assert len(lane.served) == 2
            for number in range(6):  # It is not asked again and again.
                broker.state.groups.put(SubscriptionGroup(group_name=f"others-{number}"))
                offset = await pull_steps(broker, offset // 32, 1)
                assert not lane.pulls.tables.accepted
            assert len(lane.served) == 2
            await pull_steps(broker, offset // 32, 2)
            assert len(lane.served) == 4

    simulated.run(main())


def test_pulls_are_answered_even_if_they_cannot_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            await pull_steps(broker, 0, 3)
            assert len(lane.served) == 3
            monkeypatch.setattr(LanePulls, "apply", lambda *_: 1 // 0)
            await pull_steps(broker, 3, 3)

    simulated.run(main())
    assert "the lane has failed" in caplog.text


def test_few_pulls_load_no_kernel(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, **BIG_FILES) as broker:
            await fill(broker, 600)
            await pull_steps(broker, 0, 3)
            assert pulls_of(broker)._loading is None  # type: ignore[attr-defined]

    simulated.run(main())


def test_it_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAKE_LANE", "off")

    async def main() -> None:
        async with running(tmp_path, **BIG_FILES) as broker:
            await fill(broker, 600)
            await pull_steps(broker, 0, 18)
            server: Any = broker.broker
            assert server._server._router._served[RequestCode.PULL_MESSAGE].route.run is None

    simulated.run(main())


def test_a_pull_that_is_left_to_the_ordinary_path_concerns_no_other_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with pulling(tmp_path, monkeypatch, **BIG_FILES) as (broker, lane):
            await fill(broker, 600)
            await pull_steps(broker, 0, 1)
            (own,) = broker.broker.peers
            other = Running(broker.broker)
            await pull_steps(other, 1, 1)
            (another,) = broker.broker.peers - {own}
            before = len(lane.served)
            lane.pulls.leave_next(another)
            await pull_steps(broker, 2, 1)
            assert len(lane.served) == before + 1
            await pull_steps(other, 3, 1)
            assert len(lane.served) == before + 1
            await pull_steps(other, 4, 1)
            assert len(lane.served) == before + 2
            await other.client.close()

    asyncio.run(main())
