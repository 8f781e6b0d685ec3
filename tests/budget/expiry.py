"""Pops that expire together: their messages go to the retry topic of their group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from mqlake.formats.topic_names import TIMER_TOPIC
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.retry_topics import retry_topic
from mqlake.store.append.message import Message
from mqlake.testing.advanced_clock import AdvancedClock
from tests.broker.running import Running, running
from tests.budget.connection import Connection
from tests.budget.full_broker import FILE_SIZES
from tests.budget.measured import Measured
from tests.budget.meter import Meter, scale
from tests.budget.requests import Ask

POPS = 16_640
_TOPIC, _GROUP = "Expiring", "waiting"
_OUT = 600
"""Seconds for which they are invisible: longer than it takes to pop them."""
_PATIENCE = 300.0
_POP = Ask(
    fields={
        "topic": _TOPIC,
        "consumerGroup": _GROUP,
        "queueId": "-1",
        "maxMsgNums": "1",
        "invisibleTime": str(_OUT * 1000),
    }
)


async def measure_expiry(path: Path, meter: Meter, share: int, *, are_stored: bool) -> Measured:
    """Measure the expiry of pops of one message each: an n-th of them, all of which are due at
    once.

    Args:
        are_stored: whether their check points are in the log meanwhile, else in memory.
    """
    clock, count = AdvancedClock(), POPS // share
    stay = 1 if are_stored else 2 * _OUT * 1000
    settings = FILE_SIZES | {
        "timerPrecisionMs": 100,
        "popCkStayBufferTime": stay,
        "autoCreateTopicEnable": True,
    }
    async with running(path, clock=clock, **settings) as broker:
        await _pop_all(broker, meter, count)
        if are_stored:
            await _until(meter, lambda: _stored(broker, TIMER_TOPIC) >= count)
        meter.take()
        clock.advance(_OUT)
        retry = retry_topic(_TOPIC, _GROUP, is_v2=False)
        await _until(meter, lambda: _stored(broker, retry) >= count)
        longest, total = meter.take()
    where = "stored" if are_stored else "in memory"
    return Measured(f"{count:,} pops expire, {where}", longest, total, 0, scale())


async def _pop_all(broker: Running, meter: Meter, count: int) -> None:
    one = Connection(broker.broker._server, meter)
    broker.state.topics.make(_TOPIC, 4)
    await broker.state.store.put_many(
        [Message(_TOPIC, b"hello", queue_id=number % 4) for number in range(count)]
    )
    await _until(meter, lambda: _stored(broker, _TOPIC) == count)
    for _ in range(count):
        answer = await one.ask(_POP.command(RequestCode.POP_MESSAGE))
        assert answer.body, answer.remark
    one.close()


def _stored(broker: Running, topic: str) -> int:
    """Return how many messages the queues of a topic have got."""
    reads = broker.state.store.reads
    return sum(reads.queue(topic, number)[1] for number in reads.queues(topic))


async def _until(meter: Meter, is_done: Callable[[], bool]) -> None:
    async with asyncio.timeout(_PATIENCE):
        while True:
            await asyncio.sleep(0.05)
            meter.mute()
            if is_done():
                return
