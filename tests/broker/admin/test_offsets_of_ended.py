"""Offsets that are set a queue at a time, while their topic or their group is deleted."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from mqlake.broker.admin.offsets import OffsetAdmin
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.header import Header
from mqlake.protocol.headers.admin import CloneOffsetHeader, ResetOffsetHeader
from tests import simulated
from tests.broker.endings.world import QUEUES, World

TOPIC, GROUP, OTHER = "T", "G", "H"
REQUESTS: dict[RequestCode, Header] = {
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: ResetOffsetHeader(
        topic=TOPIC, group=GROUP, timestamp=-1
    ),
    RequestCode.CLONE_GROUP_OFFSET: CloneOffsetHeader(
        src_group=OTHER, dest_group=GROUP, topic=TOPIC
    ),
}


async def _use(world: World) -> None:
    await world.create(TOPIC, GROUP)
    await world.create(TOPIC, OTHER)
    offsets = world.broker.state.store.config.consumer_offsets
    for queue_id in range(QUEUES):
        await world.send(TOPIC, "a", "b", queue_id=queue_id)
        offsets.commit(OTHER, TOPIC, queue_id, 2)


@pytest.mark.parametrize("is_again", [False, True])
@pytest.mark.parametrize("is_topic", [False, True])
@pytest.mark.parametrize("code", REQUESTS)
def test_nothing_is_set_after_a_deletion(
    tmp_path: Path, code: RequestCode, *, is_topic: bool, is_again: bool
) -> None:
    async def test() -> None:
        async with World(tmp_path) as world:
            admin = OffsetAdmin(world.broker.state, world.broker.runtime)
            jobs = {
                RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: admin._reset_all,
                RequestCode.CLONE_GROUP_OFFSET: admin._clone_all,
            }
            for steps in range(1, 9):
                await _use(world)
                job = jobs[code](request(code, REQUESTS[code]))
                with suppress(StopIteration):
                    for _ in range(steps):
                        next(job)
                if is_topic:
                    await world.delete_topic(TOPIC)
                else:
                    await world.delete_group(GROUP, clean_offset=True)
                if is_again:
                    await world.create(TOPIC, GROUP)
                with suppress(RemotingError):
                    for _ in job:
                        pass
                offsets = world.broker.state.store.config.consumer_offsets
                found = offsets.query_topic(GROUP, TOPIC)
                is_later = code == RequestCode.CLONE_GROUP_OFFSET and not is_topic
                if not (is_later and found == dict.fromkeys(range(QUEUES), 2)):
                    assert not found, f"after step {steps}"

    simulated.run(test())
