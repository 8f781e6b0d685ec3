"""A batch query over brokers has the rows that the store directory has."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from mqlake.client.errors import ClientError
from mqlake.errors import FormatError, StoreError
from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import Topic
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.namesrv import RegisterBrokerHeader
from mqlake.query.live.connection import close_connections
from mqlake.query.live.plan import plan_batch
from mqlake.query.reading.conditions import AnyNumber, AnyText, Between
from mqlake.remoting.client import RemotingClient
from mqlake.testing import RunningBroker, broker
from tests.broker.running import PATIENCE
from tests.client import test_inner_batches
from tests.client.servers import create_topic
from tests.golden import store
from tests.odd.sent import COUNT
from tests.odd.world import World, drawn, put
from tests.query.live.rows import batch_rows, options_of
from tests.query.live.topics import BROKER, NumberedTopic, wait_for_route
from tests.query.store import rows as of_directory
from tests.query.store.rows import Row


def in_queues(rows: list[Row], topics: set[str]) -> list[Row]:
    """Return rows of messages that are in queues of these topics."""
    return [row for row in rows if row["topic"] in topics and row["sysFlag"] & 12 in (0, 8)]


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq49-clean"])
def test_every_column_of_every_message(name: str, tmp_path: Path) -> None:
    path = store(name).copy(tmp_path / "store")
    expected = of_directory.batch_rows(path, brokerName=BROKER)

    with broker(path, fileReservedTime=1_000_000) as running:
        asyncio.run(wait_for_route(running.name_server, "TopicA"))
        found = batch_rows(running.name_server)
        columns = "physicalOffset,uniqKey"
        named = batch_rows(running.name_server, subscribe="TopicA", columns=columns)
        close_connections()

    topics = {row["topic"] for row in found}
    assert {"TopicA", "TopicB"} <= topics
    assert found == in_queues(expected, topics)
    of_topic = in_queues(expected, {"TopicA"})
    assert named == [{name: row[name] for name in columns.split(",")} for row in of_topic]


def test_odd_messages(tmp_path: Path) -> None:
    dice = Random("live")
    world = World(tmp_path)
    odd = (msgspec.structs.replace(one, topic="Odd") for one in drawn(dice, COUNT))
    put(world, [msgspec.structs.replace(one, queue_id=one.queue_id % 4) for one in odd], dice)
    world.store.close()
    expected = of_directory.batch_rows(tmp_path, subscribe="Odd", brokerName=BROKER)

    with broker(tmp_path) as running:
        asyncio.run(create_topic(running.address, "Odd", 4))
        asyncio.run(wait_for_route(running.name_server, "Odd"))
        found = batch_rows(running.name_server, subscribe="Odd")
        close_connections()

    assert len(found) > COUNT // 2
    assert found == expected


@pytest.fixture(scope="module")
def topic(running: RunningBroker) -> NumberedTopic:
    """100 messages in each of three queues, a tenth of them with the tag `b`."""
    made = NumberedTopic(running, queues=3)
    for number in range(30):
        made.send(9, tags="a")
        made.send(1, tags="b")
        if number == 15:
            made.send(0)
    return made


@pytest.fixture(scope="module")
def rows(running: RunningBroker, topic: NumberedTopic) -> list[Row]:
    found = batch_rows(running.name_server, subscribe=topic.name)
    assert sorted(row["keys"][0] for row in found) == topic.keys
    return found


def offsets(rows: list[Row], queue: int) -> list[int]:
    return [row["queueOffset"] for row in rows if row["queueId"] == queue]


def test_starting_and_ending_offsets(running: RunningBroker, topic: NumberedTopic) -> None:
    first = json.dumps({topic.name: {BROKER: {"0": 10, "1": -2}}})
    last = json.dumps({topic.name: {"0": 20, "1": -1, "2": 5}})
    found = batch_rows(
        running.name_server, subscribe=topic.name, startingOffsets=first, endingOffsets=last
    )
    assert offsets(found, 0) == list(range(10, 20))
    assert offsets(found, 1) == list(range(100))
    assert offsets(found, 2) == list(range(5))


def test_assigned_queues(running: RunningBroker, topic: NumberedTopic) -> None:
    for queues in (f'{{"{topic.name}": [1]}}', f'{{"{topic.name}": {{"{BROKER}": [1]}}}}'):
        found = batch_rows(running.name_server, assign=queues, columns="queueId,physicalOffset")
        assert [row["queueId"] for row in found] == [1] * 100


def test_times(running: RunningBroker, topic: NumberedTopic, rows: list[Row]) -> None:
    for row in rows[:: len(rows) // 7]:
        time = row["storeTimestamp"]
        asked: dict[str, Any] = {
            "subscribe": topic.name,
            "startingOffsetsByTimestampStrategy": "latest",
        }
        since = batch_rows(running.name_server, startingTimestamp=time, **asked)
        assert since == [one for one in rows if one["storeTimestamp"] >= time]
        before = batch_rows(running.name_server, endingTimestamp=time, **asked)
        assert before == [one for one in rows if one["storeTimestamp"] < time]


def test_a_time_after_the_last_message(running: RunningBroker, topic: NumberedTopic) -> None:
    with pytest.raises(StoreError, match="no message is from"):
        batch_rows(running.name_server, subscribe=topic.name, startingTimestamp=1 << 50)
    late = {"startingTimestamp": 1 << 50, "startingOffsetsByTimestampStrategy": "latest"}
    assert batch_rows(running.name_server, subscribe=topic.name, **late) == []


def test_tags_and_keys(running: RunningBroker, topic: NumberedTopic, rows: list[Row]) -> None:
    tagged = batch_rows(running.name_server, subscribe=topic.name, tags="b || c")
    assert tagged == [row for row in rows if row["tags"] == "b"]
    assert len(tagged) == 30
    wanted = [rows[7]["keys"][0], rows[8]["uniqKey"], "nobody"]
    found = batch_rows(running.name_server, subscribe=topic.name, keys=" ".join(wanted))
    assert found == [rows[7], rows[8]]


def test_pushed_filters(running: RunningBroker, topic: NumberedTopic, rows: list[Row]) -> None:
    """Spark applies them again, so more rows than wanted may come, and none too few."""
    pushed = (
        AnyNumber("queueId", (1,)),
        Between("queueOffset", low=10, high=19),
        AnyText("topic", (topic.name,)),
    )
    found = batch_rows(running.name_server, pushed, subscribe=topic.name)
    assert offsets(found, 1) == list(range(10, 20))
    assert len(found) == 10
    tags = batch_rows(running.name_server, (AnyText("tags", ("b",)),), subscribe=topic.name)
    assert tags == [row for row in rows if row["tags"] == "b"]
    time = rows[150]["storeTimestamp"]
    since = batch_rows(
        running.name_server, (Between("storeTimestamp", low=time),), subscribe=topic.name
    )
    assert [row for row in since if row["storeTimestamp"] >= time] == [
        row for row in rows if row["storeTimestamp"] >= time
    ]
    late = (Between("storeTimestamp", low=time + 1_000_000),)
    assert batch_rows(running.name_server, late, subscribe=topic.name) == []


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [300]),
        ({"minPartitions": 2}, [200, 100]),
        ({"minPartitions": 3}, [100] * 3),
        ({"minPartitions": 6}, [50] * 6),
        ({"maxRecordsPerPartition": 40}, [33, 33, 34] * 3),
    ],
)
def test_tasks(
    running: RunningBroker,
    topic: NumberedTopic,
    rows: list[Row],
    options: dict[str, int],
    sizes: list[int],
) -> None:
    asked = options_of(running.name_server, subscribe=topic.name, **options)
    tasks = plan_batch(asked)
    assert [sum(one.end - one.start for one in task.ranges) for task in tasks] == sizes
    assert batch_rows(running.name_server, subscribe=topic.name, **options) == rows


def test_all_topics_but_internal_ones(running: RunningBroker, topic: NumberedTopic) -> None:
    def topics(**options: str) -> set[str]:
        found = batch_rows(running.name_server, columns="topic,physicalOffset", **options)
        return {row["topic"] for row in found}

    other = NumberedTopic(running)
    other.send(1)
    assert topics() == {topic.name, other.name}
    assert topics(subscribePattern="Numbered.*") == {topic.name, other.name}
    assert topics(subscribePattern=f".*{topic.name[-1]}") == {topic.name}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "Nowhere"}, "topic 'Nowhere' does not exist"),
        ({"subscribePattern": "Nowhere.*"}, "no topic matches"),
        ({"assign": '{"TOPIC": [7]}'}, "queue TOPIC-7 does not exist"),
        ({"assign": '{"TOPIC": {"broker-z": [0]}}'}, "queue TOPIC-broker-z-0 does not exist"),
        (
            {"subscribe": "TOPIC", "startingOffsets": '{"TOPIC": {"0": 101}}'},
            "has offsets 0 to 100, not 101",
        ),
    ],
)
def test_what_does_not_exist(
    running: RunningBroker, topic: NumberedTopic, options: dict[str, str], message: str
) -> None:
    given = {name: text.replace("TOPIC", topic.name) for name, text in options.items()}
    with pytest.raises(StoreError, match=message.replace("TOPIC", topic.name)):
        batch_rows(running.name_server, **given)
    assert batch_rows(running.name_server, failOnDataLoss=False, **given) is not None


def test_offsets_of_something_else(running: RunningBroker, topic: NumberedTopic) -> None:
    with pytest.raises(FormatError, match="starting offsets name Other-0, which does not exist"):
        batch_rows(running.name_server, subscribe=topic.name, startingOffsets='{"Other": {"0": 1}}')


def test_nobody_there() -> None:
    with pytest.raises(ClientError, match=r"route of topic A: .*tried for 0.3 s.*retryTimeout"):
        batch_rows("127.0.0.1:9", subscribe="A", retryTimeout="300ms")


def test_a_broker_that_is_gone(
    running: RunningBroker, topic: NumberedTopic, caplog: pytest.LogCaptureFixture
) -> None:
    """It is an error, or a warning if losses are tolerated: never only fewer rows."""
    topic.send(10)
    given = {"subscribe": topic.name, "retryTimeout": "10ms"}
    lost = f"topic {topic.name}, broker broker-z, queue 0: 127.0.0.1:1: Connection refused"

    async def read() -> list[Row]:
        async with registered(running.name_server, topic.name, "broker-z", "127.0.0.1:1"):
            with pytest.raises(StoreError, match=f"{lost}.*set failOnDataLoss to false"):
                await asyncio.to_thread(batch_rows, running.name_server, **given)
            return await asyncio.to_thread(
                batch_rows, running.name_server, failOnDataLoss=False, **given
            )

    assert sorted(row["keys"][0] for row in asyncio.run(read())) == topic.keys
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert sum(re.search(lost, text) is not None for text in warnings) == 1


@asynccontextmanager
async def registered(names: str, topic: str, name: str, address: str) -> AsyncIterator[None]:
    """Let a name server list a broker with one queue of a topic, which nobody runs."""
    # A name server ignores the first registration of a single topic.
    topics = {each: Topic(each, 1, 1) for each in (topic, name)}
    body = RegisterBody(TopicConfigs(topics, DataVersion(0, 0, 1))).encode()
    header = RegisterBrokerHeader(
        broker_name=name,
        broker_addr=address,
        cluster_name="DefaultCluster",
        broker_id=0,
        ha_server_addr="",
        body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
    )
    client = RemotingClient(connect_timeout=PATIENCE)
    try:
        asked = request(RequestCode.REGISTER_BROKER, header, body)
        assert (await client.call(names, asked, PATIENCE)).code == 0
        yield
    finally:
        await client.close()


def test_batches_in_one_record_are_taken_apart(running: RunningBroker) -> None:
    asyncio.run(test_inner_batches.send(running, "Batched"))
    asyncio.run(wait_for_route(running.name_server, "Batched"))
    last = test_inner_batches.COUNT * test_inner_batches.SIZE
    for first in (0, 4):
        asked = {"startingOffsets": f'{{"Batched": {{"0": {first}}}}}', "maxRecordsPerPartition": 5}
        found = batch_rows(running.name_server, subscribe="Batched", **asked)
        assert sorted(row["queueOffset"] for row in found) == list(range(first, last))
        assert {row["body"] for row in found} == {b"%d" % n for n in range(first, last)}


@pytest.mark.parametrize("columns", ["body,sysFlag", "body", "sysFlag"])
def test_compressed_bodies(running: RunningBroker, columns: str) -> None:
    topic = NumberedTopic(running)
    topic.send(4)
    topic.send(3, size=20_000)  # Producers compress from 4 KiB on.
    whole = batch_rows(running.name_server, subscribe=topic.name)
    long = [row for row in whole if len(row["body"]) > 20_000]
    assert len(long) == 3
    assert all(row["body"] == row["keys"][0].encode() + b"x" * 20_000 for row in long)
    assert not any(row["sysFlag"] & COMPRESSED for row in whole)

    names = columns.split(",")
    asked = f"keys,physicalOffset,{columns}"
    found = batch_rows(running.name_server, subscribe=topic.name, columns=asked)
    by_key = {row["keys"][0]: row for row in whole}
    assert len(found) == len(whole) == 7
    assert all(row[name] == by_key[row["keys"][0]][name] for row in found for name in names)

    stored = batch_rows(running.name_server, subscribe=topic.name, decompress=False)
    packed = [row for row in stored if row["sysFlag"] & COMPRESSED]
    assert len(packed) == 3
    assert all(len(row["body"]) < 4096 for row in packed)
