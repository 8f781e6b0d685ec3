"""Static topics: RocketMQ's mqadmin and Java clients, on two brokers of mqlake and of RocketMQ."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mqlake.client import Consumer, ConsumerSettings, Message, Producer
from mqlake.testing import broker
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_client import NEWEST, Clients
from tests.peer.rocketmq_cluster import Cluster
from tests.until import wait_until

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(600),
]

TOPIC, QUEUES, LOGICAL = "JavaStatic", 4, "__syslo__global__"
PATIENCE = 120.0
SETTINGS: dict[str, object] = {"mappedFileSizeCommitLog": 1 << 24, "deleteWhen": "04"}


@contextmanager
def mqlake_pair(_: Path) -> Iterator[str]:
    with (
        broker(brokerName="broker-a", **SETTINGS) as first,
        broker(brokerName="broker-b", namesrvAddr=first.name_server, **SETTINGS),
    ):
        yield first.name_server


@contextmanager
def java_pair(path: Path) -> Iterator[str]:
    clusters: list[Cluster] = []
    try:
        for name in ("broker-a", "broker-b"):
            (path / name).mkdir()
            also = clusters[0].names if clusters else ""
            settings = {**SETTINGS, "brokerName": name}
            clusters.append(Cluster(path / name, path / name / "store", settings, also=also))
            clusters[-1].start()
        yield clusters[0].names
    finally:
        for cluster in clusters:
            cluster.kill()


class Reader:
    """A Java consumer, and what it was given."""

    def __init__(self, clients: Clients, names: str, group: str) -> None:
        self._clients, self._names = clients, names
        self.seen: list[list[Any]] = []
        clients.join(names, "concurrent", TOPIC, group, group)

    def await_bodies(self, bodies: set[str]) -> None:
        wait_until(
            lambda: self._bodies() >= bodies,
            why=lambda: f"{sorted(bodies)}, and came {self.seen}",
        )

    def _bodies(self) -> set[str]:
        self.seen += self._clients.events(self._names)
        return {event[3] for event in self.seen if event[2] == "finish"}

    def offsets(self) -> dict[int, list[int]]:
        """Return the offsets of each logic queue's messages."""
        found: dict[int, set[int]] = {}
        for _, _, what, _, _, topic, name, queue_id, offset in self.seen:
            if what == "deliver" and topic == TOPIC:
                assert name == LOGICAL
                found.setdefault(queue_id, set()).add(offset)
        return {queue_id: sorted(offsets) for queue_id, offsets in sorted(found.items())}


def bodies(word: str) -> set[str]:
    return {f"{word} {number}" for number in range(10)}


def admin(clients: Clients, names: str, *words: str) -> str:
    return clients.mqadmin(names, [list(words)])[0]


def play(clients: Clients, names: str) -> dict[str, Any]:
    """Create a static topic, use it, move it to the other broker, use it; return what was seen."""
    created = admin(
        clients, names, "updateStaticTopic", "-t", TOPIC, "-qn", str(QUEUES), "-b", "broker-a"
    )
    assert "new mapping data is written" in created
    reader = Reader(clients, names, "G_static")
    clients.begin(names, TOPIC, "1")
    reader.await_bodies(bodies("1"))
    first = reader.offsets()
    moved = admin(clients, names, "remappingStaticTopic", "-t", TOPIC, "-b", "broker-b")
    assert moved.count("mapping data is written") == 2
    assert "Exception" not in moved
    clients.begin(names, TOPIC, "2")
    reader.await_bodies(bodies("2"))
    # 31 is refused once, and comes again by way of the retry topic.
    clients.begin(names, TOPIC, "31")
    reader.await_bodies(bodies("31"))
    clients.leave(names, "G_static")
    late = Reader(clients, names, "G_static_late")
    late.await_bodies(bodies("1") | bodies("2") | bodies("31"))
    clients.leave(names, "G_static_late")
    status = admin(clients, names, "topicStatus", "-t", TOPIC)
    progress = admin(clients, names, "consumerProgress", "-g", "G_static")
    return {
        "before": first,
        "after": reader.offsets(),
        "late": late.offsets(),
        "status": sorted(rows(status)),
        "progress": sorted(rows(progress)),
    }


def rows(text: str) -> Iterator[tuple[str, ...]]:
    """Yield broker, queue and offsets of the lines about logic queues."""
    for line in text.splitlines():
        if LOGICAL in line:
            yield tuple(re.sub(r"\d{4}-\d\d-\d\d.*", "", line).split()[:6])


def check(seen: dict[str, Any]) -> None:
    assert list(seen["late"]) == list(range(QUEUES))
    assert sum(map(len, seen["before"].values())) == 10
    assert sum(map(len, seen["after"].values())) == 30
    assert seen["late"] == seen["after"]
    for queue_id, found in seen["late"].items():
        old = seen["before"].get(queue_id, [])
        assert found[: len(old)] == old == list(range(len(old)))
        new = found[len(old) :]
        assert new == list(range(10_000, 10_000 + len(new)))
    assert [row[1] for row in seen["status"]] == [str(each) for each in range(QUEUES)]
    for row, found in zip(seen["status"], seen["late"].values(), strict=True):
        assert (row[2], int(row[3])) == ("0", found[-1] + 1)
    assert len(seen["progress"]) == QUEUES


@contextmanager
def tools(directory: Path) -> Iterator[Clients]:
    directory.mkdir()
    try:
        clients = Clients(directory, NEWEST, rebalance=1000)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    try:
        yield clients
    finally:
        clients.close()


def test_java_tools_and_clients_on_two_brokers_of_mqlake(tmp_path: Path) -> None:
    with tools(tmp_path / "tools") as clients, mqlake_pair(tmp_path) as names:
        check(play(clients, names))
        asyncio.run(python_members(clients, names, back="broker-a"))


@pytest.mark.nightly
def test_the_same_on_two_brokers_of_rocketmq(tmp_path: Path) -> None:
    with tools(tmp_path / "tools") as clients, java_pair(tmp_path) as names:
        check(play(clients, names))
        asyncio.run(python_members(clients, names, back="broker-a"))


async def python_members(clients: Clients, names: str, back: str) -> None:
    """Read all with mqlake's client; send, also when the topic has moved again."""
    found: dict[tuple[int, int], bytes] = {}
    settings = ConsumerSettings(consume_from="first", rebalance_interval=1.0)

    async def read(count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                message = await anext(messages)
                assert message.queue.broker_name == LOGICAL
                found[message.queue.queue_id, message.queue_offset] = bytes(message.body)
                await message.ack()

    async with (
        Producer(names, group="P_python", timeout=60) as producer,
        Consumer(names, "G_python", TOPIC, settings=settings) as consumer,
    ):
        messages = aiter(consumer)
        await read(30)
        sent = [await producer.send(Message(topic=TOPIC, body=b"python")) for _ in range(8)]
        words = ("remappingStaticTopic", "-t", TOPIC, "-b", back)
        moved = await asyncio.to_thread(admin, clients, names, *words)
        assert "Exception" not in moved
        sent += [await producer.send(Message(topic=TOPIC, body=b"moved")) for _ in range(8)]
        assert {result.queue.broker_name for result in sent} == {LOGICAL}
        await read(46)
    for result in sent:
        assert (result.queue.queue_id, result.queue_offset) in found
    assert all(result.queue_offset >= 20_000 for result in sent[8:])
