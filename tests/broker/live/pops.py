"""What consumers that pop get, and how they wait."""

from __future__ import annotations

import asyncio

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from tests.broker.admin.asking import done, wanted
from tests.broker.clients_of import known_client
from tests.broker.live.observing import change, observes, soon, until
from tests.broker.pop.assignments import ask as assignment
from tests.broker.pop.popping import (
    GROUP,
    LONG,
    RETRY,
    TOPIC,
    acknowledge,
    header,
    pop,
    send,
    until_waiting,
)
from tests.broker.running import PATIENCE, Running


@observes("enableRetryTopicV2")
async def retry_topic_v2(broker: Running) -> None:
    await send(broker, "a")
    await change(broker, enableRetryTopicV2="true")
    await pop(broker, invisible_time=100)
    await until(lambda: bool(broker.records(f"%RETRY%{GROUP}+{TOPIC}")))


@observes("defaultMessageRequestMode")
async def request_mode(broker: Running) -> None:
    async with known_client(broker, {}, "one", groups=GROUP):
        await send(broker, "a")
        assert {mode for _, mode in await assignment(broker, "one") or []} == {"PULL"}
        await change(broker, defaultMessageRequestMode="POP")
        assert {mode for _, mode in await assignment(broker, "one") or []} == {"POP"}


@observes("defaultPopShareQueueNum", defaultMessageRequestMode="POP", defaultPopShareQueueNum=0)
async def pop_share(broker: Running) -> None:
    async with (
        known_client(broker, {}, "one", groups=GROUP),
        known_client(broker, {}, "two", groups=GROUP),
        known_client(broker, {}, "three", groups=GROUP),
    ):
        await send(broker, "a")
        assert await assignment(broker, "one") == [(-1, "POP")]
        await change(broker, defaultPopShareQueueNum=1)
        found = await assignment(broker, "one") or []
        assert {queue_id >= 0 for queue_id, _ in found} == {True}


def start_pop(broker: Running) -> asyncio.Task[int]:
    """Begin a pop that waits; its result is the code of the answer."""

    async def ask() -> int:
        asked = request(RequestCode.POP_MESSAGE, header(poll_time=LONG, born_time=_now(broker)))
        return (await broker.client.request(broker.address, asked, PATIENCE)).code

    return asyncio.create_task(ask())


def _now(broker: Running) -> int:
    return broker.state.store.core.clock.milliseconds()


async def turned_away(broker: Running, name: str) -> None:
    await send(broker, "a")
    await acknowledge(broker, *await pop(broker))
    waiting = [start_pop(broker)]
    await until_waiting(broker, 1)
    assert not waiting[0].done()
    await change(broker, **{name: 0})
    refused = start_pop(broker)
    await soon(asyncio.wait([refused]))
    assert refused.result() == ResponseCode.POLLING_FULL
    await send(broker, "b")
    await asyncio.gather(*waiting)


@observes("popPollingSize")
async def pop_polling_size(broker: Running) -> None:
    await turned_away(broker, "popPollingSize")


@observes("maxPopPollingSize")
async def max_pop_polling_size(broker: Running) -> None:
    await turned_away(broker, "maxPopPollingSize")


@observes("popCkStayBufferTime", popCkStayBufferTime=86_400_000)
async def stay_in_memory(broker: Running) -> None:
    await send(broker, "a")
    await change(broker, popCkStayBufferTime=0)
    end = broker.state.store.core.log.end
    await pop(broker, invisible_time=60_000)
    # The check point, which waits in the topic of timer messages.
    await until(lambda: broker.state.store.core.log.end > end)


@observes("useSeparateRetryQueue")
async def separate_retry_queue(broker: Running) -> None:
    await send(broker, "a", queue_id=1)
    await change(broker, useSeparateRetryQueue="true")
    await pop(broker, invisible_time=100)
    await until(lambda: bool(broker.records(RETRY, 1)))


async def _is_retry_first(broker: Running) -> bool:
    """Say whether pops look into the retry topic first, by one message there and one in Orders."""
    await send(broker, "again")
    await pop(broker, invisible_time=100)
    await until(lambda: bool(broker.records(RETRY)))
    await send(broker, "new")
    (first,) = await pop(broker, max_msg_nums=1)
    return first.record.reconsume_times > 0


@observes("popFromRetryProbability", popFromRetryProbability=0)
async def retry_first(broker: Running) -> None:
    await change(broker, popFromRetryProbability=100)
    assert await _is_retry_first(broker)


async def _make_priority_topic(broker: Running) -> None:
    header = wanted(TOPIC, attributes="+message.type=PRIORITY")
    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


@observes("popFromRetryProbabilityForPriority", popFromRetryProbability=0)
async def retry_first_by_priority(broker: Running) -> None:
    await _make_priority_topic(broker)
    await change(broker, popFromRetryProbabilityForPriority=100)
    assert await _is_retry_first(broker)


@observes("priorityOrderAsc")
async def priority_order(broker: Running) -> None:
    await _make_priority_topic(broker)
    for queue_id in range(2):
        await send(broker, str(queue_id), queue_id=queue_id)
    await change(broker, priorityOrderAsc="false")
    (first,) = await pop(broker, max_msg_nums=1)
    assert first.body == "0"
