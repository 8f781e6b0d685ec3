"""A store without a table of incarnations, as RocketMQ writes it: what waits is delivered."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.incarnations import EndedIncarnations
from mqlake.protocol.codes import ResponseCode
from tests import simulated
from tests.broker.endings.world import World
from tests.broker.running import to

WAITS = {"a delay level": "DELAY\x014\x02", "a timer": "TIMER_DELAY_SEC\x0130\x02"}


@pytest.mark.parametrize("name", WAITS)
def test_a_message_that_is_older_than_the_first_one_of_its_topic(tmp_path: Path, name: str) -> None:
    """The topic's queue begins after the message that waits: that does not mean a deletion."""

    async def test() -> None:
        async with World(tmp_path) as world:
            await world.create("T", "g", 1)
            answer = await world.broker.send(to("T", properties=WAITS[name]), b"waits")
            assert answer.code == ResponseCode.SUCCESS
            await world.send("T", "first", queue_id=0)
            await world.settle()
            store = await world.stop()
            (store / "config" / EndedIncarnations.file_name).unlink()
            await world.restart()
            assert world.broker.state.store.incarnations.before("T") > 0, "it is derived"
            expected = {"first", "waits"}
            assert (await world.received("T", "g", list(expected))).keys() == expected
            assert world.broker.state.store.redelivery.dead == 0

    simulated.run(test())
