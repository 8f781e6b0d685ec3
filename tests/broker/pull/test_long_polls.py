"""Pulls that wait for messages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.pull.long_polls import WaitingPull
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND
from mqlake.store.reads.live_reads import LiveReads
from tests import simulated
from tests.broker.consuming import Consumer, subscription
from tests.broker.live.observing import until
from tests.broker.pull.pulls import (
    GROUP,
    Pulled,
    fill,
    numbers,
    polls,
    pull,
    pull_header,
    pulled,
    start_pull,
)
from tests.broker.running import PATIENCE, Running, running, to
from tests.broker.slow_reader import SlowReader

LONG = int(PATIENCE * 1000)


def all_waiting(broker: Running) -> list[WaitingPull]:
    topics = polls(broker)._topics.values()
    queues = [queue for topic in topics for queue in topic.queues.values()]
    return [pull for queue in queues for pull in (*queue.woken, *queue.waiting)]


async def until_waiting(broker: Running, *pulls: asyncio.Task[Pulled]) -> None:
    """Return once so many pulls wait; none of these must be answered."""
    await until(lambda: len(polls(broker)) >= len(pulls) or any(one.done() for one in pulls))
    assert [one.result() for one in pulls if one.done()] == []


def end_first(broker: Running) -> None:
    """Let the time be up of the pulls that wait the shortest."""
    parking = polls(broker)._parking
    tick = min(tick for tick, moment in parking._moments.items() if moment)
    parking._end(tick)
    parking._moments[tick] = {}  # for its timer


def test_a_pull_waits_for_messages(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 10)
            waiting = start_pull(broker, 10, LONG)
            other = start_pull(broker, 0, LONG, queue_id=1)
            await until_waiting(broker, waiting, other)
            assert (await pull(broker, 0)).bodies == numbers(0, 10), "others are served"
            await fill(broker, 5, 10)
            found = await waiting
            assert (found.code, found.bodies) == (ResponseCode.SUCCESS, numbers(10, 15))
            assert (found.offsets.next_begin_offset, found.offsets.max_offset) == (15, 15)
            await fill(broker, 1, 20, queue_id=1)
            assert (await other).bodies == [b"20"]

    simulated.run(main())


def test_many_wait_for_one_queue(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 1)
            waiting = [start_pull(broker, 1, LONG, consumer_group=f"g{n}") for n in range(50)]
            await until_waiting(broker, *waiting)
            await fill(broker, 1, 1)
            assert [one.bodies for one in await asyncio.gather(*waiting)] == [[b"1"]] * 50

    simulated.run(main())


def test_groups_that_want_the_same_share_a_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 1)
            waiting = [start_pull(broker, 1, LONG, consumer_group=f"g{n}") for n in range(50)]
            other = start_pull(broker, 1, LONG, consumer_group="h", subscription="Tag")
            await until_waiting(broker, other, *waiting)
            reads: list[object] = []
            get = LiveReads.get

            def counted(reader: LiveReads, *args: Any, **named: Any) -> object:
                reads.append(args)
                return get(reader, *args, **named)

            monkeypatch.setattr(LiveReads, "get", counted)
            # The second message comes when some may have been answered.
            await fill(broker, 1, 1)
            await fill(broker, 1, 2)
            found = [one.bodies for one in await asyncio.gather(*waiting)]
            assert all(bodies in ([b"1"], [b"1", b"2"]) for bodies in found)
            assert len(reads) <= 20
            monkeypatch.setattr(LiveReads, "get", get)
            late = start_pull(broker, 3, LONG, consumer_group="g0")
            await until_waiting(broker, other, late)
            await fill(broker, 1, 3)
            assert (await late).bodies == [b"3"]

    simulated.run(main())


@pytest.mark.parametrize(
    "settings", [{}, {"longPollingEnable": False, "shortPollingTimeMills": 50}]
)
def test_its_time_is_up(tmp_path: Path, settings: dict[str, object]) -> None:
    async def main() -> None:
        async with running(tmp_path, **settings) as broker:
            await fill(broker, 10)
            found = await start_pull(broker, 10, 50 if not settings else LONG)
            assert (found.code, found.remark) == (
                ResponseCode.PULL_NOT_FOUND,
                "OFFSET_OVERFLOW_ONE",
            )
            assert found.offsets.next_begin_offset == 10
            assert (await start_pull(broker, 10, -(1 << 62))).code == ResponseCode.PULL_NOT_FOUND

    simulated.run(main())


@pytest.mark.parametrize(
    "fields",
    [{"subscription": "t1"}, {"subscription": "TAGS = 't1'", "expression_type": "SQL92"}],
)
def test_what_is_not_wanted_wakes_nobody(tmp_path: Path, fields: dict[str, object]) -> None:
    async def main() -> None:
        async with running(tmp_path, maxFilterMessageSize=2000) as broker:
            await fill(broker, 10)
            waiting = start_pull(broker, 10, LONG, **fields)
            short = start_pull(broker, 10, LONG // 2, **fields)
            await until_waiting(broker, waiting, short)
            await fill(broker, 250, 10, tags="t2")  # more than one look takes
            await until(lambda: [pull.seen for pull in all_waiting(broker)] == [260, 260])
            await until_waiting(broker, waiting, short)
            end_first(broker)
            found = await short
            assert (found.code, found.remark) == (
                ResponseCode.PULL_RETRY_IMMEDIATELY,
                "NO_MATCHED_MESSAGE",
            )
            assert found.offsets.next_begin_offset == 260, "need not be looked at again"
            await fill(broker, 2, 260, tags="t1")
            assert (await waiting).bodies == numbers(260, 262)

    simulated.run(main())


def test_what_happens_while_a_pull_waits(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 10)
            one = Consumer(broker)
            await one.beat(GROUP, subscription("Orders"))
            waiting = start_pull(one, 10, LONG, sys_flag=2)
            await until_waiting(broker, waiting)
            await one.beat(GROUP, subscription("Others"))
            await fill(broker, 1, 10)
            assert (await waiting).code == ResponseCode.SUBSCRIPTION_NOT_EXIST

            waiting = start_pull(broker, 11, LONG)
            await until_waiting(broker, waiting)
            broker.state.store.core.config.consumer_offsets.reset(GROUP, "Orders", 0, 3)
            await fill(broker, 1, 11)
            found = await waiting
            assert (found.code, found.offsets.next_begin_offset) == (
                ResponseCode.PULL_OFFSET_MOVED,
                3,
            )
            await one.close()

    simulated.run(main())


def test_a_connection_is_closed_while_its_pull_waits(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 10)
            one = Consumer(broker)
            gone = start_pull(one, 10, LONG)
            await until_waiting(broker, gone)
            await one.close()
            with pytest.raises(Exception, match="lost"):
                await gone
            waiting = start_pull(broker, 10, LONG)
            await until_waiting(broker, waiting)
            await fill(broker, 1, 10)
            assert (await waiting).bodies == [b"10"]

    simulated.run(main())


def test_the_broker_stops_while_pulls_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 10)
            waiting = start_pull(broker, 10, LONG)
            await until_waiting(broker, waiting)
            await broker.broker.stop()
            assert (await waiting).code == ResponseCode.PULL_NOT_FOUND

    simulated.run(main())


def test_pulls_of_a_client_that_does_not_read_are_answered_once_it_reads(tmp_path: Path) -> None:
    """Their time is up meanwhile, and the broker does not fill its memory with their answers."""
    body = bytes(250_000)

    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 1)
            fields = pull_header(
                1, sys_flag=HAS_SUBSCRIPTION | MAY_SUSPEND, suspend_timeout_millis=LONG
            )
            slow = await SlowReader.connect(broker)
            await slow.ask(request(RequestCode.PULL_MESSAGE, fields) for _ in range(100))
            await until(lambda: len(polls(broker)) == 100)
            assert not (await broker.send(to("Orders", queue_id=0), body)).code
            await until(lambda: any(peer.is_choked for peer in broker.broker.peers))
            while len(polls(broker)):
                end_first(broker)
                await asyncio.sleep(0.1)
            assert max(peer.unsent for peer in broker.broker.peers) < 2_000_000
            answers = await slow.read(100)
            assert [pulled(answer).bodies for answer in answers] == [[body]] * 100
            assert len({answer.opaque for answer in answers}) == 100
            slow.close()

    asyncio.run(main())
