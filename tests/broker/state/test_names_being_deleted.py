"""A topic whose files are being deleted is not created meanwhile: its messages would be deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.protocol.codes import ResponseCode
from mqlake.testing.advanced_clock import AdvancedClock
from tests import simulated
from tests.broker.consuming import Consumer
from tests.broker.pop.popping import RETRY, bodies, change, pop, send
from tests.broker.pop.test_pop import OUT, until
from tests.broker.running import Running, running
from tests.broker.send_back.test_send_back import give_back, put

OF_GROUP, DEAD = "%RETRY%group", "%DLQ%group"


def test_heartbeats_create_the_retry_topic_afterwards(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            consumer = Consumer(broker)
            with broker.state.topics.deleting(OF_GROUP):
                assert (await consumer.beat("group")).code == ResponseCode.SUCCESS
                assert OF_GROUP not in broker.state.topics
                assert "group" in broker.state.clients.consumers
            await consumer.beat("group")
            assert OF_GROUP in broker.state.topics
            await consumer.close()

    simulated.run(run())


@pytest.mark.parametrize(("name", "level"), [(OF_GROUP, 1), (DEAD, -1)])
def test_a_message_is_sent_back_afterwards(tmp_path: Path, name: str, level: int) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            record = await put(broker)
            with broker.state.topics.deleting(name):
                refused = await give_back(broker, record, level)
                assert refused.code == ResponseCode.SYSTEM_ERROR
                assert "is being deleted; try again later" in (refused.remark or "")
                assert name not in broker.state.topics
                assert copies(broker) == 0
            assert (await give_back(broker, record, level)).code == ResponseCode.SUCCESS
            assert copies(broker) == 1

    def copies(broker: Running) -> int:
        return len(broker.records(SCHEDULE_TOPIC, 0)) + len(broker.records(DEAD))

    simulated.run(run())


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_popped_message_is_redelivered_afterwards(tmp_path: Path, is_changed: bool) -> None:
    """Its time is over, or its consumer asks for it at once."""

    async def run() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock) as broker:
            await send(broker, "a")
            (popped,) = await pop(broker, invisible_time=OUT)
            with broker.state.topics.deleting(RETRY):
                if is_changed:
                    await change(broker, popped, 0)
                clock.advance(2 * OUT / 1000)
                assert await pop(broker, poll_time=1000) == []
                assert RETRY not in broker.state.topics
            assert bodies(await until(broker, 1, invisible_time=OUT)) == ["a"]

    simulated.run(run())
