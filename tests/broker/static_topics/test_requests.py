"""Sends, pulls and offsets of logic queues, on the leader and on earlier brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.formats.properties import PRIORITY
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.offsets import (
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    TimestampHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION, MAY_SUSPEND
from tests import simulated
from tests.broker.pull.pulls import GROUP, Pulled, polls, pull_header, pulled
from tests.broker.running import PATIENCE, Running, running, to
from tests.broker.static_topics.pairs import (
    TOPIC,
    A,
    B,
    item,
    mapping,
    moved,
    offset,
    put,
    sent,
    two_brokers,
)
from tests.until import until

NOT_LEADER = ResponseCode.NOT_LEADER_FOR_QUEUE


async def pull(broker: Running, at: int, **fields: Any) -> Pulled:
    header = pull_header(at, topic=TOPIC, **fields)
    return pulled(await broker.ask(RequestCode.PULL_MESSAGE, header))


def queue(**fields: Any) -> QueueHeader:
    return QueueHeader(**({"topic": TOPIC, "queue_id": 0} | fields))


def group(**fields: Any) -> QueryConsumerOffsetHeader:
    known = {"topic": TOPIC, "queue_id": 0, "consumer_group": GROUP}
    return QueryConsumerOffsetHeader(**(known | fields))  # pyright: ignore[reportArgumentType]


def commit(at: int, **fields: Any) -> UpdateConsumerOffsetHeader:
    known = {"topic": TOPIC, "queue_id": 0, "consumer_group": GROUP, "commit_offset": at}
    return UpdateConsumerOffsetHeader(**(known | fields))  # pyright: ignore[reportArgumentType]


def on_moved(
    path: Path, check: Callable[[Running, Running], Awaitable[None]], **settings: object
) -> None:
    async def run() -> None:
        async with moved(path, **settings) as (a, b):
            await check(a, b)

    simulated.run(run())


def test_a_logic_queue_is_sent_to_and_read_under_its_own_id(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            queues = {0: [item(A, queue=1)], 1: [item(A, queue=0)]}
            await put(broker, mapping(A, queues, total=2), queues=2)
            assert await sent(broker, 3, queue_id=0) == [0, 1, 2]
            assert len(broker.records(TOPIC, 1)) == 3
            assert not broker.records(TOPIC, 0)
            found = await pull(broker, 0)
            assert found.bodies == [b"m0", b"m1", b"m2"]
            assert found.offsets.offset_delta == 0
            assert (await pull(broker, 0, queue_id=1)).code == ResponseCode.PULL_NOT_FOUND
            # Requests that another broker has translated name the broker's own queue.
            assert (await pull(broker, 0, queue_id=1, lo=False)).bodies == found.bodies
            answer = await broker.send(to(TOPIC, queue_id=-1))
            assert answer.fields["queueId"] in ("0", "1")
            assert (await broker.send(to(TOPIC, queue_id=2))).code == NOT_LEADER

    simulated.run(run())


def test_many_sends_at_once_do_not_bypass_the_mapping(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await put(broker, mapping(A, {0: [item(A, logic=500, queue=2)]}), queues=3)
            await asyncio.gather(*(broker.send(to(TOPIC)) for _ in range(50)))
            answers = await asyncio.gather(*(broker.send(to(TOPIC)) for _ in range(200)))
            offsets = sorted(int(each.fields["queueOffset"]) for each in answers)
            assert offsets == list(range(550, 750))
            assert len(broker.records(TOPIC, 2)) == 250

    simulated.run(run())


def test_only_the_leader_serves_a_logic_queue(tmp_path: Path) -> None:
    async def check(a: Running, b: Running) -> None:
        assert await sent(b, 2) == [10_000, 10_001]
        assert (await a.send(to(TOPIC))).code == NOT_LEADER
        assert (await pull(a, 0)).code == NOT_LEADER
        for code, header in (
            (RequestCode.GET_MAX_OFFSET, queue()),
            (RequestCode.GET_MIN_OFFSET, queue()),
            (RequestCode.GET_EARLIEST_MSG_STORETIME, queue()),
            (
                RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
                SearchOffsetHeader(topic=TOPIC, queue_id=0, timestamp=0),
            ),
            (RequestCode.QUERY_CONSUMER_OFFSET, group()),
            (RequestCode.UPDATE_CONSUMER_OFFSET, commit(1)),
        ):
            assert (await a.ask(code, header)).code == NOT_LEADER

    on_moved(tmp_path, check)


def test_a_queue_that_moved_is_read_from_its_start_to_its_end(tmp_path: Path) -> None:
    async def check(_: Running, b: Running) -> None:
        await sent(b, 3, prefix="n")
        bodies: list[bytes] = []
        offsets: list[int] = []
        at = 0
        for _ in range(4):
            found = await pull(b, at, max_msg_nums=4)
            delta = found.offsets.offset_delta
            assert delta is not None
            bodies += found.bodies
            offsets += [each.queue_offset + delta for each in found.records]
            assert found.offsets.max_offset in (10_000, 10_003)
            at = found.offsets.next_begin_offset
        assert bodies == [b"m0", b"m1", b"m2", b"m3", b"m4", b"n0", b"n1", b"n2"]
        assert offsets == [0, 1, 2, 3, 4, 10_000, 10_001, 10_002]
        end = await pull(b, at)
        assert (end.code, at) == (ResponseCode.PULL_NOT_FOUND, 10_003)
        gap = await pull(b, 7000)
        assert gap.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        assert gap.offsets.next_begin_offset == 10_000
        beyond = await pull(b, 20_000)
        assert beyond.code == ResponseCode.PULL_OFFSET_MOVED
        assert beyond.offsets.next_begin_offset == 10_003

    on_moved(tmp_path, check)


def test_offsets_of_a_queue_that_moved(tmp_path: Path) -> None:
    async def check(a: Running, b: Running) -> None:
        await sent(b, 3)
        b.records(TOPIC)  # dispatches them
        assert await offset(b, RequestCode.GET_MAX_OFFSET, queue()) == 10_003
        assert await offset(b, RequestCode.GET_MIN_OFFSET, queue()) == 0
        times = [each.store_timestamp for each in a.records(TOPIC)]
        times += [each.store_timestamp for each in b.records(TOPIC)]
        answer = await b.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, queue())
        assert answer.header(TimestampHeader).timestamp == times[0]
        logical = [0, 1, 2, 3, 4, 10_000, 10_001, 10_002]
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        for time in (0, *times, times[-1] + 1):
            later = [at for at, each in zip(logical, times, strict=True) if each >= time]
            before = [at for at, each in zip(logical, times, strict=True) if each <= time]
            lower = SearchOffsetHeader(topic=TOPIC, queue_id=0, timestamp=time)
            upper = SearchOffsetHeader(
                topic=TOPIC, queue_id=0, timestamp=time, boundary_type="UPPER"
            )
            assert await offset(b, code, lower) == (later[0] if later else 10_003)
            assert await offset(b, code, upper) == (before[-1] if before else 0)

    on_moved(tmp_path, check)


def test_a_group_stands_where_it_committed_on_either_broker(tmp_path: Path) -> None:
    async def check(a: Running, b: Running) -> None:
        for broker in (a, b):
            await pull(broker, 0, lo=False)  # creates the group
        await sent(b, 3)
        query, update = RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET
        assert (await b.ask(query, group())).code == ResponseCode.QUERY_NOT_FOUND
        for at, stands in ((3, 3), (10_002, 10_002)):
            answer = await b.ask(update, commit(at))
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            assert await offset(b, query, group()) == stands
        kept = [each.state.store.config.consumer_offsets.query(GROUP, TOPIC, 0) for each in (a, b)]
        assert kept == [3, 2]

    on_moved(tmp_path, check)


def test_a_pull_commits_in_the_stretch_of_its_offset(tmp_path: Path) -> None:
    async def check(_: Running, b: Running) -> None:
        await sent(b, 3)
        flags = HAS_SUBSCRIPTION | COMMITS_OFFSET
        offsets = b.state.store.config.consumer_offsets
        assert (await pull(b, 10_001, sys_flag=flags, commit_offset=2)).bodies == [b"m1", b"m2"]
        assert offsets.query(GROUP, TOPIC, 0) is None
        await pull(b, 10_001, sys_flag=flags, commit_offset=10_001)
        assert offsets.query(GROUP, TOPIC, 0) == 1

    on_moved(tmp_path, check)


def test_a_pull_commits_in_another_queue_of_its_broker(tmp_path: Path) -> None:
    """A logic queue that came back to a broker may have two of its queues."""

    async def run() -> None:
        async with running(tmp_path) as broker:
            items = [item(A, queue=1), item("gone", gen=1, logic=10), item(A, gen=2, logic=20)]
            await put(broker, mapping(A, {0: items}), queues=2)
            assert await sent(broker, 1) == [20]
            flags = HAS_SUBSCRIPTION | COMMITS_OFFSET
            offsets = broker.state.store.config.consumer_offsets
            for commit_offset in (0, 10):  # The broker "gone" has the second one.
                found = await pull(broker, 20, sys_flag=flags, commit_offset=commit_offset)
                assert found.bodies == [b"m0"]
            assert offsets.query(GROUP, TOPIC, 1) == 0
            assert offsets.query(GROUP, TOPIC, 0) is None

    asyncio.run(run())


def test_a_priority_chooses_no_other_queue(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await put(broker, mapping(A, {0: [item(A, logic=7)]}), queues=2)
            properties = f"{PRIORITY}\x011\x02"
            answer = await broker.send(to(TOPIC, properties=properties))
            assert (answer.fields["queueId"], answer.fields["queueOffset"]) == ("0", "7")
            answer = await broker.send(to(TOPIC, properties=properties, lo=False))
            assert (answer.fields["queueId"], answer.fields["queueOffset"]) == ("1", "0")

    asyncio.run(run())


def test_a_broker_that_does_not_answer_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        async with two_brokers(tmp_path) as (_, b):
            await put(b, mapping(B, {0: [item("gone"), item(B, gen=1, logic=100)]}))
            found = await pull(b, 0)
            assert found.code == ResponseCode.SYSTEM_ERROR
            assert "gone" in found.remark
            assert await sent(b, 1) == [100]

    simulated.run(run())


def test_mappings_that_name_each_other_are_followed_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with two_brokers(tmp_path) as (a, b):
            await put(a, mapping(A, {0: [item(B), item(A, gen=1, logic=100)]}))
            await put(b, mapping(B, {0: [item(A), item(B, gen=1, logic=100)]}))
            for broker in (a, b):
                found = await pull(broker, 0)
                assert found.code == ResponseCode.PULL_RETRY_IMMEDIATELY
                assert found.offsets.next_begin_offset == 100
                assert await offset(broker, RequestCode.GET_MIN_OFFSET, queue()) == 0

    simulated.run(run())


def test_a_queue_whose_offsets_are_not_decided(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await put(broker, mapping(A, {0: [item(A, logic=-1)]}))
            assert await sent(broker, 1) == [-1]
            for code in (RequestCode.GET_MAX_OFFSET, RequestCode.GET_MIN_OFFSET):
                assert (await broker.ask(code, queue())).code == ResponseCode.SYSTEM_ERROR
            assert (await pull(broker, 0)).code == ResponseCode.SYSTEM_ERROR

    simulated.run(run())


def test_a_pull_that_waits_is_answered_when_its_queue_moves(tmp_path: Path) -> None:
    async def run() -> None:
        async with two_brokers(tmp_path) as (a, b):
            await put(a, mapping(A, {0: [item(A)]}))
            await sent(a, 1)
            flags = HAS_SUBSCRIPTION | MAY_SUSPEND
            waiting = asyncio.create_task(pull(a, 1, sys_flag=flags, suspend_timeout_millis=60_000))
            await until(lambda: len(polls(a)) == 1)
            queues = {0: [item(A), item(B, gen=1, logic=10_000)]}
            await put(b, mapping(B, queues, epoch=2))
            await put(a, mapping(A, queues, epoch=2))
            found = await asyncio.wait_for(waiting, PATIENCE)
            assert found.code == ResponseCode.PULL_RETRY_IMMEDIATELY
            assert found.offsets.next_begin_offset == 1
            # And one at the leader is served by what arrives.
            waiting = asyncio.create_task(
                pull(b, 10_000, sys_flag=flags, suspend_timeout_millis=60_000)
            )
            await until(lambda: len(polls(b)) == 1)
            await sent(b, 1)
            found = await asyncio.wait_for(waiting, PATIENCE)
            assert (found.bodies, found.offsets.offset_delta) == ([b"m0"], 10_000)
            assert found.offsets.next_begin_offset == 10_001

    simulated.run(run())


@pytest.mark.parametrize("at", [-1, -(2**63), 2**63 - 1])
def test_extreme_offsets_are_answered(tmp_path: Path, at: int) -> None:
    async def check(_: Running, b: Running) -> None:
        found = await pull(b, at)
        assert found.code in (ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_RETRY_IMMEDIATELY)
        assert 0 <= found.offsets.next_begin_offset <= 10_000
        answer = await b.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit(at))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        known = await offset(b, RequestCode.QUERY_CONSUMER_OFFSET, group())
        if isinstance(known, int):
            assert 0 <= known <= 10_000
        else:  # A commit past the end is ignored.
            assert at > 10_000
            assert known.code == ResponseCode.QUERY_NOT_FOUND
        header = SearchOffsetHeader(topic=TOPIC, queue_id=0, timestamp=at)
        found_at = await offset(b, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        assert isinstance(found_at, int)

    on_moved(tmp_path, check)


def test_a_transaction_on_a_moved_queue_is_committed(tmp_path: Path) -> None:
    async def check(_: Running, b: Running) -> None:
        properties = "TRAN_MSG\x01true\x02PGROUP\x01producers\x02UNIQ_KEY\x01K1\x02"
        answer = await b.send(to(TOPIC, properties=properties, sys_flag=4))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        # The half topic's own offset: the producer names it again in its commit.
        assert answer.fields["queueOffset"] == "0"
        assert answer.fields["queueId"] == "0"

    on_moved(tmp_path, check)
