"""The lane makes room in the log, and finds queues, by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.lane import lane, layout
from mqlake.broker.lane.choice import is_chosen
from mqlake.store.append.message import Message
from tests.broker.lane.lanes import served, with_lane
from tests.broker.running import PATIENCE
from tests.broker.send.bursts import ask_bursts
from tests.broker.send.random_sends import KEY, TOPIC, made
from tests.protocol.messages import SEND_FIELDS

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

QUEUES = 4


def test_serves_all_sends_while_the_log_needs_more_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, an incomplete frame would be passed to its connection.
    monkeypatch.setattr(lane, "_PATIENCE", PATIENCE)

    async def run() -> None:
        async with with_lane(tmp_path, mappedFileSizeCommitLog=1 << 24) as (broker, calls):
            frame = made(0, SEND_FIELDS | {"i": KEY}, body=bytes(30_000))
            answers = await ask_bursts(broker, [[frame]] * 200)
            assert len(answers) == 200
            # Room is made once for each MiB. If others had to make it, they would put some.
            assert served(calls) == 200

    asyncio.run(run())


def test_asks_for_each_queue_once_whatever_else_is_put(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            frames = [made(0, SEND_FIELDS | {"e": str(queue), "i": KEY}) for queue in range(QUEUES)]
            for _ in range(10):
                assert len(await ask_bursts(broker, [frames])) == QUEUES
                broker.state.store.appends.again(Message(TOPIC, b"again", queue_id=1))
            assert calls[::2].count(layout.NEW_QUEUE) == QUEUES
            broker.state.store.reads.catch_up()
            found = [broker.state.store.reads.queue(TOPIC, queue)[1] for queue in range(QUEUES)]
            assert found == [11, 20, 10, 10]  # The first one has a message of `with_lane`.

    asyncio.run(run())


def test_asks_again_for_the_queues_once_one_was_removed(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, _):
            frames = [made(0, SEND_FIELDS | {"e": str(queue), "i": KEY}) for queue in range(2)]
            await ask_bursts(broker, [frames] * 3)
            outside: Any = broker.state.store.appends.outside
            outside._offsets.remove(TOPIC, 1)
            # Another queue gets the place of the removed one.
            outside._offsets.set("Other", 0, 50)
            await ask_bursts(broker, [frames])
            assert outside._offsets.next(TOPIC, 0) == 5  # One is a message of `with_lane`.
            assert outside._offsets.next(TOPIC, 1) == 1
            assert outside._offsets.next("Other", 0) == 50

    asyncio.run(run())
