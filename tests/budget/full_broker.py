"""A broker that has as much as its limits allow, and a name server that knows as many topics."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData, Subscription
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.store.append.message import Message
from tests.broker.running import Running, running
from tests.budget.connection import Connection
from tests.budget.meter import Meter

TOPICS, GROUPS, OFFSETS = 49_900, 19_900, 490_000
BIG, QUEUES = "Big", 4096
"""The topic with the most queues; group g0 has an offset in each, and g1 in half of all topics."""
CROWD = "crowd"
"""The group with the most members."""
CROWD_SIZE = 1000
EQUAL_KEYS = 10_000
LONGEST = 4 << 20
"""Bytes of the longest message (`maxMessageSize`)."""
FILE_SIZES: dict[str, object] = {
    "mappedFileSizeCommitLog": 256 << 20,
    "mappedFileSizeConsumeQueue": 200_000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 1_000_000,
}
"""Nearer to those of real stores than those of other tests, which create files all the time."""
SETTINGS = FILE_SIZES | {
    "autoCreateTopicEnable": True,
    "timerWheelEnable": True,
    "channelExpiredTimeout": 24 * 3600 * 1000,
}
"""Clients that are silent stay, however slow this machine."""


def write_tables(store: Path, share: int) -> None:
    """Write the tables in `config/`, with an n-th of what the limits allow."""
    config = store / "config"
    config.mkdir(parents=True)
    topics = {
        name: {"topicName": name, "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}
        for name in (f"T{number}" for number in range(TOPICS // share))
    }
    topics[BIG] = topics["T0"] | {
        "topicName": BIG,
        "readQueueNums": QUEUES,
        "writeQueueNums": QUEUES,
    }
    (config / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    groups = {f"g{number}": {"groupName": f"g{number}"} for number in range(GROUPS // share)}
    (config / "subscriptionGroup.json").write_text(json.dumps({"subscriptionGroupTable": groups}))
    table = {f"{BIG}@g0": dict.fromkeys(range(QUEUES), 0)}
    for number in range(TOPICS // share // 2):
        table[f"T{number}@g1"] = dict.fromkeys(range(4), 0)
    for number in range((OFFSETS // share - 4 * len(table) - QUEUES) // 4):
        topic, group = number % (TOPICS // share), 2 + number % (GROUPS // share - 2)
        table[f"T{topic}@g{group}"] = dict.fromkeys(range(4), 0)
    (config / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))


@asynccontextmanager
async def full_broker(path: Path, meter: Meter, share: int = 1) -> AsyncGenerator[Running]:
    """Run such a broker; it has an n-th of what the limits allow."""
    write_tables(path, share)
    async with running(path, **SETTINGS) as broker:
        server = broker.broker._server
        server._limits = server._limits._replace(idle=0)
        store = broker.state.store
        # The longest message has physical offset 0, which requests name.
        await store.put(Message("T0", bytes(LONGEST), keys="long"))
        written = range(0, QUEUES, max(1, share // 4))  # Each has files, which take time to create.
        await store.put_many(
            [Message(BIG, b"hello", keys="k", queue_id=number) for number in written]
        )
        await store.put(Message("T0", b"", keys=["Aa"] * EQUAL_KEYS))
        await store.put_many([Message("T0", bytes(100), "tag", f"one k{n}") for n in range(10_000)])
        await _connect(broker, meter, 20 // share or 1, CROWD_SIZE)
        yield broker


async def _connect(broker: Running, meter: Meter, many: int, crowd: int) -> None:
    """Connect clients of many groups, and many clients of one group."""
    server = broker.broker._server
    for number in range(many):
        consumers = [
            ConsumerData(f"g{n}", subscription_data_set=[Subscription(f"T{n}")])
            for n in range(500 * number + 10, 500 * (number + 1))
        ]
        producers = [ProducerData(f"p{n}") for n in range(500 * number, 500 * (number + 1))]
        data = Heartbeat(f"many-{number}", producers, consumers)
        asked = request(RequestCode.HEART_BEAT, None, encode_body(data))
        await Connection(server, meter).ask(asked)
    for number in range(crowd):
        data = Heartbeat(
            f"crowd-{number}",
            [ProducerData(CROWD)],
            [ConsumerData(CROWD, subscription_data_set=[Subscription(BIG)])],
        )
        asked = request(RequestCode.HEART_BEAT, None, encode_body(data))
        await Connection(server, meter).ask(asked)
