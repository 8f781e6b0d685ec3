"""Whoever sends a message and then asks about it finds it, however late it is dispatched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mqlake.protocol.bodies.stats import ConsumeStats, TopicStats
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import ConsumeStatsHeader, ResetOffsetHeader, TopicNameHeader
from mqlake.protocol.headers.offsets import (
    OffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    TimestampHeader,
    UpdateConsumerOffsetHeader,
)
from mqlake.store.append.message import Message
from mqlake.store.core import puts
from mqlake.store.loop import dispatching, service_task
from tests import simulated
from tests.broker.admin.asking import done
from tests.broker.pull.pulls import pull
from tests.broker.query.queries import bodies, query
from tests.broker.running import Running, running

HOUR = 3600.0
SENT = 3
QUEUE = QueueHeader(topic="Orders", queue_id=0)
GROUP = "g"


async def end(broker: Running) -> object:
    answer = await done(broker, RequestCode.GET_MAX_OFFSET, QUEUE)
    return answer.header(OffsetHeader).offset


async def time_of_the_first(broker: Running) -> object:
    answer = await done(broker, RequestCode.GET_EARLIEST_MSG_STORETIME, QUEUE)
    return answer.header(TimestampHeader).timestamp > 0


async def end_by_time(broker: Running) -> object:
    header = SearchOffsetHeader(topic="Orders", queue_id=0, timestamp=1 << 50)
    answer = await done(broker, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
    return answer.header(OffsetHeader).offset


async def end_in_topic(broker: Running) -> object:
    header = TopicNameHeader(topic="Orders")
    answer = await done(broker, RequestCode.GET_TOPIC_STATS_INFO, header)
    return sum(at.max_offset for at in TopicStats.decode(answer.body).offset_table.values())


async def lag(broker: Running) -> object:
    header = ConsumeStatsHeader(consumer_group=GROUP, topic="Orders")
    answer = await done(broker, RequestCode.GET_CONSUME_STATS, header)
    return ConsumeStats.decode(answer.body).lag


async def by_key(broker: Running) -> object:
    return len(bodies(await query(broker, "key")))


async def reset_to_the_end(broker: Running) -> object:
    header = ResetOffsetHeader(topic="Orders", group=GROUP, timestamp=-1)
    await done(broker, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    return broker.state.store.config.consumer_offsets.query(GROUP, "Orders", 0)


async def commit_of_the_end(broker: Running) -> object:
    header = UpdateConsumerOffsetHeader(
        consumer_group=GROUP, topic="Orders", queue_id=0, commit_offset=SENT
    )
    await done(broker, RequestCode.UPDATE_CONSUMER_OFFSET, header)
    return broker.state.store.config.consumer_offsets.query(GROUP, "Orders", 0)


async def pull_from_the_last(broker: Running) -> object:
    found = await pull(broker, SENT - 1)
    return found.code == ResponseCode.SUCCESS and found.offsets.next_begin_offset


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (end, SENT),
        (time_of_the_first, True),
        (end_by_time, SENT),
        (end_in_topic, SENT),
        (lag, SENT),
        (by_key, SENT),
        (reset_to_the_end, SENT),
        (commit_of_the_end, SENT),
        (pull_from_the_last, SENT),
    ],
)
def test_answers_include_what_was_acknowledged_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[Running], Awaitable[object]],
    expected: object,
) -> None:
    """No timer dispatches anything here, and no put that finds the last dispatch long ago."""
    for name in ("TICK", "LOADED_TICK"):
        monkeypatch.setattr(dispatching, name, HOUR)
    monkeypatch.setattr(service_task, "LOOK_INTERVAL", HOUR)
    monkeypatch.setattr(puts, "_LONGEST_TICK", HOUR * 1000)

    async def check() -> None:
        async with running(tmp_path) as broker:
            broker.state.topics.make("Orders", 1)
            broker.state.groups.get_or_make(GROUP)
            for number in range(SENT):
                message = Message("Orders", b"%d" % number, keys="key")
                await broker.state.store.put(message)
            marks = broker.state.store.watermarks
            assert marks.dispatched < marks.confirmed
            assert await ask(broker) == expected

    simulated.run(check())
