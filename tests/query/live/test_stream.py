"""The stream over brokers gives each message once, whatever happens to topics, brokers, query."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from mqlake.admin import Admin, groups
from mqlake.errors import StoreError
from mqlake.query.live.position import LivePosition
from mqlake.testing import RunningBroker
from tests.query.live.engine import LiveEngine, asked
from tests.query.live.topics import BROKER, NumberedTopic, wait_for_route
from tests.query.store.growing import KilledError

SOON = {"retryTimeout": "1s"}
"""For queries over what does not come back: they wait for it so long."""


def engine(running: RunningBroker, topic: NumberedTopic, **options: Any) -> LiveEngine:
    return LiveEngine(asked(running.name_server, subscribe=topic.name, **options))


@pytest.fixture
def topic(running: RunningBroker) -> NumberedTopic:
    made = NumberedTopic(running)
    made.send(30)
    return made


@pytest.mark.parametrize("seed", range(4))
def test_every_message_once_across_growth_and_kills(running: RunningBroker, seed: int) -> None:
    chance = random.Random(seed)
    topic = NumberedTopic(running, queues=3)
    limit = {"maxOffsetsPerTrigger": chance.choice((1, 7, 50)), "minPartitions": 5}
    query = engine(running, topic, **(limit if seed else {}))
    for _ in range(12):
        step = chance.choice(("grow", "trigger", "planned", "written", "restart"))
        if step == "grow":
            topic.send(chance.randint(1, 20))
        elif step == "restart":
            query.restart()
        else:
            try:
                query.trigger(None if step == "trigger" else step)
            except KilledError:
                query.restart()
    query.run_all()
    assert query.sorted_keys == topic.keys
    assert not seed or max(map(len, query.sink.values())) <= limit["maxOffsetsPerTrigger"]


def test_the_checkpoint(running: RunningBroker, topic: NumberedTopic) -> None:
    query = engine(running, topic)
    query.run_all()
    start = query.stream.position()
    end = query.stream.position(start, query.stream.most)
    assert start == {topic.name: {BROKER: {"0": 0, "1": 0}}}
    assert end[topic.name] == {BROKER: {"0": 15, "1": 15}}
    lasts = {row["queueId"]: row for rows in query.sink.values() for row in rows}
    marks = LivePosition.read(end).marks
    assert {queue.queue_id: mark.physical_offset for queue, mark in marks.items()} == {
        number: row["physicalOffset"] for number, row in lasts.items()
    }
    assert query.stream.position(end, query.stream.most) == end


def test_a_new_query_starts_after_what_is_there(
    running: RunningBroker, topic: NumberedTopic
) -> None:
    query = engine(running, topic, startingOffsets="latest")
    assert query.trigger() == 0
    topic.send(5)
    query.run_all()
    assert len(query.keys) == 5


def test_new_topics_and_queues_are_found(running: RunningBroker) -> None:
    query = LiveEngine(asked(running.name_server, subscribePattern="Numbered.*"))
    query.run_all()
    before = len(query.keys)
    new = NumberedTopic(running)
    new.send(10)
    query.trigger()
    query.restart()
    query.run_all()
    found = [row["keys"][0] for rows in query.sink.values() for row in rows]
    assert sorted(found[before:]) == new.keys


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("count", [4, 60])
def test_a_topic_created_anew_is_an_error(
    running: RunningBroker, topic: NumberedTopic, count: int, *, restarted: bool
) -> None:
    query = engine(running, topic)
    query.run_all()
    assert query.sorted_keys == topic.keys
    topic.create_anew()
    topic.send(count)
    if restarted:
        query.restart()

    with pytest.raises(StoreError, match=r"the topic.* was deleted and created again"):
        query.trigger()

    read = list(query.keys)
    query.restart(asked(running.name_server, subscribe=topic.name, failOnDataLoss=False))
    query.run_all()
    topic.send(10)
    query.run_all()
    assert sorted(query.keys[len(read) :]) == topic.keys


def test_a_topic_that_is_deleted(running: RunningBroker, topic: NumberedTopic) -> None:
    query = engine(running, topic)
    query.run_all()
    topic.delete()
    query.restart(asked(running.name_server, subscribe=topic.name, **SOON))
    with pytest.raises(StoreError, match="is no longer in a route: the topic was deleted"):
        query.trigger()
    query.restart(asked(running.name_server, subscribe=topic.name, failOnDataLoss=False, **SOON))
    assert query.trigger() == 0


def test_a_batch_of_a_topic_that_was_deleted(running: RunningBroker, topic: NumberedTopic) -> None:
    query = engine(running, topic)
    with pytest.raises(KilledError):
        query.trigger("planned")
    topic.delete()
    with pytest.raises(StoreError, match="15 messages at offset 0: "):
        query.restart(asked(running.name_server, subscribe=topic.name, **SOON))
    query.restart(asked(running.name_server, subscribe=topic.name, failOnDataLoss=False, **SOON))
    assert query.keys == []


def test_available_now_leaves_what_comes_later(
    running: RunningBroker, topic: NumberedTopic
) -> None:
    query = engine(running, topic, maxOffsetsPerTrigger=8)
    query.stream.stop_at_end()
    before = topic.keys
    query.trigger()
    topic.send(20)
    query.run_all()
    assert query.sorted_keys == before
    assert [len(rows) for rows in query.sink.values()] == [8, 8, 8, 6]


def test_retention_that_overtakes_the_query(running: RunningBroker) -> None:
    """A queue whose first messages are gone: brokers answer by the offset of the first one left."""
    topic = NumberedTopic(running, queues=1)
    topic.send(20)
    query = engine(running, topic, maxOffsetsPerTrigger=5)
    query.trigger()
    end = query.stream.position({topic.name: {BROKER: {"0": 5}}}, query.stream.most)
    assert end[topic.name] == {BROKER: {"0": 10}}


def progress(running: RunningBroker, group: str) -> dict[int, tuple[int, int]]:
    """Return a group's offset and lag by queue, as `mqadmin consumerProgress` shows them.

    It finds the group by its retry topic, of which the name server hears a little later.
    """

    async def ask() -> list[groups.QueueProgress]:
        await wait_for_route(running.name_server, f"%RETRY%{group}")
        async with Admin(running.name_server) as admin:
            return await groups.progress(admin, group)

    rows = asyncio.run(ask())
    return {
        row.queue_id: (row.consumer_offset, row.lag)
        for row in rows
        if not row.topic.startswith("%")
    }


def test_offsets_of_a_group_are_committed(running: RunningBroker, topic: NumberedTopic) -> None:
    query = engine(running, topic, groupId="spark-orders", maxOffsetsPerTrigger=10)
    query.trigger()
    assert progress(running, "spark-orders") == {0: (5, 10), 1: (5, 10)}
    query.run_all()
    assert progress(running, "spark-orders") == {0: (15, 0), 1: (15, 0)}


def test_offsets_are_not_committed_unasked(running: RunningBroker, topic: NumberedTopic) -> None:
    query = engine(running, topic, groupId="spark-quiet", commitOffsets=False)
    query.run_all()
    assert len(query.keys) == 30

    async def ask() -> None:
        async with Admin(running.name_server) as admin:
            await groups.progress(admin, "spark-quiet")

    with pytest.raises(Exception, match="spark-quiet"):
        asyncio.run(ask())


def test_a_checkpoint_of_something_else(running: RunningBroker, topic: NumberedTopic) -> None:
    with pytest.raises(StoreError, match="checkpoint is not one of a running cluster"):
        engine(running, topic).stream.plan({"physicalOffset": 7}, {"physicalOffset": 8})
