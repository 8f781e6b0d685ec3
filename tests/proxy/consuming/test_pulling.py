"""The methods of pull consumers, which RocketMQ's proxy does not serve."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.grpc.messages import (
    Broker,
    Code,
    Duration,
    GetOffsetRequest,
    MessageQueue,
    PullMessageRequest,
    QueryOffsetPolicy,
    QueryOffsetRequest,
    Timestamp,
    UpdateOffsetRequest,
)
from tests import simulated
from tests.proxy.consuming.consumer import GROUP, TOPIC, TestedConsumer, send
from tests.proxy.serving import Calls, named, serving

QUEUE = MessageQueue(topic=named(TOPIC), id=0, broker=Broker(name="broker-a"))


def run(path: Path, test: Callable[[Calls], Awaitable[None]]) -> None:
    async def served() -> None:
        async with serving(path) as calls:
            calls.topic(TOPIC)
            calls.broker.state.groups.put(SubscriptionGroup(group_name=GROUP))
            TestedConsumer(calls)
            await test(calls)

    simulated.run(served())


async def pulled(calls: Calls, offset: int, **more: Any) -> tuple[int, list[bytes], int]:
    """Return the code, the bodies and the next offset of a pull."""
    known = {"batch_size": 32, "long_polling_timeout": Duration(seconds=5)} | more
    request = PullMessageRequest(group=named(GROUP), message_queue=QUEUE, offset=offset, **known)
    status, *messages, last = [
        each async for each in calls.stream("PullMessage", request, "consumer-1")
    ]
    assert last.WhichOneof("content") == "next_offset"
    return status.status.code, [each.message.body for each in messages], last.next_offset


def test_a_queue_is_read_from_an_offset(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        await send(calls, "0", "1", "2")
        assert await pulled(calls, 1) == (Code.OK, [b"1", b"2"], 3)
        assert await pulled(calls, 1, batch_size=1) == (Code.OK, [b"1"], 2)
        assert await pulled(calls, 3) == (Code.MESSAGE_NOT_FOUND, [], 3)
        code, messages, following = await pulled(calls, 100)
        assert (code, messages) == (Code.ILLEGAL_OFFSET, [])
        assert following == 0  # What the broker says, as RocketMQ's does.

    run(tmp_path, test)


def test_a_pull_waits_for_a_message(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        waiting = asyncio.create_task(pulled(calls, 0))
        await asyncio.sleep(2)
        await send(calls, "late")
        assert await waiting == (Code.OK, [b"late"], 1)

    run(tmp_path, test)


def test_a_group_commits_offsets(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        await send(calls, "0", "1")
        asked = GetOffsetRequest(group=named(GROUP), message_queue=QUEUE)
        update = UpdateOffsetRequest(group=named(GROUP), message_queue=QUEUE, offset=2)
        assert (await calls.ask("UpdateOffset", update)).status.code == Code.OK
        found = await calls.ask("GetOffset", asked)
        assert (found.status.code, found.offset) == (Code.OK, 2)
        update.offset = -1
        assert (await calls.ask("UpdateOffset", update)).status.code == Code.ILLEGAL_OFFSET

    run(tmp_path, test)


def test_offsets_of_a_queue_by_policy(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        await send(calls, "0", "1")
        await asyncio.sleep(10)
        between = calls.service.state.now()
        await send(calls, "2")

        async def offset(policy: QueryOffsetPolicy, **more: Any) -> tuple[int, int]:
            request = QueryOffsetRequest(message_queue=QUEUE, query_offset_policy=policy, **more)
            found = await calls.ask("QueryOffset", request)
            return found.status.code, found.offset

        assert await offset(QueryOffsetPolicy.BEGINNING) == (Code.OK, 0)
        assert await offset(QueryOffsetPolicy.END) == (Code.OK, 3)
        at = Timestamp(seconds=between // 1000)
        assert await offset(QueryOffsetPolicy.TIMESTAMP, timestamp=at) == (Code.OK, 2)
        assert await offset(QueryOffsetPolicy.TIMESTAMP) == (Code.ILLEGAL_OFFSET, 0)

    run(tmp_path, test)
