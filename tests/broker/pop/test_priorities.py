"""What RocketMQ's own integration test of priorities asks of a broker (`PopPriorityIT`)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.properties import priority_of
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.send import SendMessageResponseHeader
from tests.broker.admin.asking import done, wanted
from tests.broker.live.observing import until
from tests.broker.pop.popping import GROUP, RETRY, TOPIC, Popped, pop, run
from tests.broker.running import Running, running, to

QUEUES = 8
SOON, LONG = 300, 600_000
"""Milliseconds that a popped message is out."""
both_orders = pytest.mark.parametrize("is_ascending", [True, False])


async def make_topic(broker: Running, queues: int = QUEUES, kind: str = "PRIORITY") -> None:
    header = wanted(
        TOPIC, read_queue_nums=queues, write_queue_nums=queues, attributes=f"+message.type={kind}"
    )
    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


async def send(
    broker: Running, priorities: Sequence[int | None], body: bytes = b"HW", queue_id: int = -1
) -> list[int]:
    """Send messages; return the queues that they went to."""
    found: list[int] = []
    for priority in priorities:
        properties = "" if priority is None else f"_SYS_MSG_PRIORITY_\x01{priority}\x02"
        answer = await broker.send(to(TOPIC, queue_id=queue_id, properties=properties), body)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        found.append(answer.header(SendMessageResponseHeader).queue_id)
    broker.state.store.core.tick()
    return found


async def popped_once(broker: Running) -> list[Popped]:
    """Pop all there is, a short time each; return it once it can be popped again."""
    count = _retries(broker)
    first = await pop(broker, invisible_time=SOON)
    count += len(first)
    await until(lambda: _retries(broker) == count)
    return first


def _retries(broker: Running) -> int:
    return sum(len(broker.records(RETRY, queue)) for queue in range(QUEUES))


def queues(popped: Sequence[Popped]) -> list[int]:
    return [each.record.queue_id for each in popped]


def priorities(popped: Sequence[Popped]) -> list[int | None]:
    return [priority_of(each.record.properties) for each in popped]


def from_the_highest(count: int, *, is_ascending: bool) -> list[int]:
    return list(range(count))[:: -1 if is_ascending else 1]


def test_messages_without_a_priority_go_to_any_queue(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await make_topic(broker)
            assert len(set(await send(broker, [None] * 32))) > 1

    run(test())


def test_a_priority_is_the_number_of_a_queue(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await make_topic(broker)
            assert set(await send(broker, [0] * 32)) == {0}
            assert await send(broker, [3, 7, 8, 2**31 - 1]) == [3, 7, 7, 7]
            assert await send(broker, [5], queue_id=2) == [5]

    run(test())


@both_orders
def test_the_highest_priority_comes_first(tmp_path: Path, is_ascending: bool) -> None:
    async def test() -> None:
        async with running(tmp_path, priorityOrderAsc=is_ascending) as broker:
            await make_topic(broker)
            await send(broker, [number for number in range(QUEUES) for _ in range(20)])
            found = [await pop(broker, max_msg_nums=1, invisible_time=LONG) for _ in range(20)]
            highest = QUEUES - 1 if is_ascending else 0
            assert [priorities(each) for each in found] == [[highest]] * 20

    run(test())


@both_orders
def test_priorities_follow_one_another(tmp_path: Path, is_ascending: bool) -> None:
    async def test() -> None:
        async with running(tmp_path, priorityOrderAsc=is_ascending) as broker:
            await make_topic(broker)
            await send(broker, range(QUEUES))
            found: list[Popped] = []
            for _ in range(QUEUES):
                found += await pop(broker, max_msg_nums=1)
            order = from_the_highest(QUEUES, is_ascending=is_ascending)
            assert priorities(found) == queues(found) == order

    run(test())


async def _sample(broker: Running, share: int) -> Counter[int]:
    """Return how many messages of each queue come if so many percent of pops are by priority."""
    group = SubscriptionGroup(group_name=GROUP, attributes={"+priority.factor": str(share)})
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    await done(broker, code, body=encode_body(group))
    found: list[Popped] = []
    for _ in range(400):
        found += await pop(broker, max_msg_nums=1, invisible_time=LONG)
    return Counter(queues(found))


@both_orders
def test_a_group_may_read_all_queues_alike(tmp_path: Path, is_ascending: bool) -> None:
    async def test() -> None:
        async with running(tmp_path, priorityOrderAsc=is_ascending) as broker:
            await make_topic(broker)
            await send(broker, [number for number in range(QUEUES) for _ in range(100)])
            counts = await _sample(broker, 0)
            assert counts == dict.fromkeys(range(QUEUES), 50)

    run(test())


def test_a_group_may_read_some_of_the_time_by_priority(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, priorityOrderAsc=False) as broker:
            await make_topic(broker)
            await send(broker, [number for number in range(QUEUES) for _ in range(300)])
            counts = await _sample(broker, 50)
            assert 200 <= counts[0] <= 250
            assert all(counts[number] for number in range(QUEUES))

    run(test())


def test_other_topics_are_not_read_by_priority(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            await make_topic(broker, kind="NORMAL")
            assert await send(broker, [number for number in range(QUEUES) for _ in range(20)])
            found = [await pop(broker, max_msg_nums=1, invisible_time=LONG) for _ in range(20)]
            assert len({each[0].record.queue_id for each in found}) == QUEUES

    run(test())


@both_orders
@pytest.mark.parametrize("is_retry_first", [True, False])
def test_what_comes_again_is_the_lowest_or_the_highest(
    tmp_path: Path, is_ascending: bool, is_retry_first: bool
) -> None:
    async def test() -> None:
        async with running(
            tmp_path,
            priorityOrderAsc=is_ascending,
            popFromRetryProbabilityForPriority=100 if is_retry_first else 0,
        ) as broker:
            await make_topic(broker)
            dice = random.Random(1)
            await send(broker, [dice.randrange(QUEUES) for _ in range(100)])
            (again,) = await pop(broker, max_msg_nums=1, invisible_time=SOON)
            await until(lambda: bool(broker.records(RETRY)))
            found: list[Popped] = []
            while some := await pop(broker, invisible_time=LONG):
                found += some
            assert len(found) == 100
            place = 0 if is_retry_first else -1
            assert found[place].record.reconsume_times == 1
            id_of = "UNIQ_KEY"
            assert found[place].record.properties[id_of] == again.record.properties[id_of]

    run(test())


@both_orders
def test_retries_have_queues_of_their_own(tmp_path: Path, is_ascending: bool) -> None:
    async def test() -> None:
        async with running(
            tmp_path,
            priorityOrderAsc=is_ascending,
            useSeparateRetryQueue=True,
            popFromRetryProbabilityForPriority=100,
        ) as broker:
            await make_topic(broker)
            await send(broker, range(QUEUES))
            assert len(await popped_once(broker)) == QUEUES
            again = await popped_once(broker)
            assert {each.record.queue_offset for each in again} == {0}
            assert {each.record.reconsume_times for each in again} == {1}
            order = from_the_highest(QUEUES, is_ascending=is_ascending)
            assert priorities(again) == queues(again) == order
            third = await pop(broker)
            assert [each.record.reconsume_times for each in third] == [2] * QUEUES
            assert queues(third) == order

    run(test())


@both_orders
def test_queues_of_retries_grow_with_the_topic(tmp_path: Path, is_ascending: bool) -> None:
    async def test() -> None:
        async with running(
            tmp_path, priorityOrderAsc=is_ascending, useSeparateRetryQueue=True
        ) as broker:
            await make_topic(broker)
            await send(broker, range(QUEUES))
            assert len(await popped_once(broker)) == QUEUES
            await make_topic(broker, 2 * QUEUES)
            await send(broker, range(QUEUES, 2 * QUEUES))
            found = await pop(broker, invisible_time=SOON)
            order = from_the_highest(QUEUES, is_ascending=is_ascending)
            assert priorities(found) == [number + QUEUES for number in order] + order
            assert queues(found) == priorities(found)
            assert {each.record.queue_offset for each in found} == {0}
            assert [each.record.reconsume_times for each in found] == [0] * QUEUES + [1] * QUEUES
            # The others come again, too: the retry topic has queues for them by now.
            await until(lambda: bool(broker.records(RETRY, 2 * QUEUES - 1)))

    run(test())


def test_queues_of_retries_are_never_fewer(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, useSeparateRetryQueue=True) as broker:
            await make_topic(broker)
            await send(broker, range(QUEUES))
            await popped_once(broker)
            await make_topic(broker, 1)
            assert len(await popped_once(broker)) == QUEUES
            assert len(await pop(broker)) == QUEUES

    run(test())
