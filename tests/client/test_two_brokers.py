"""Two brokers and two name servers, one of which leaves and returns while messages are sent."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from mqlake.client import (
    ConsumedMessage,
    Consumer,
    ConsumerSettings,
    Message,
    Producer,
    SendResult,
)
from mqlake.client import cluster as clusters
from mqlake.client import instance as instance_module
from mqlake.programs.ports import free_port
from tests.broker.running import PATIENCE
from tests.client.behaviour.cases import tasks_left
from tests.client.ledger import Ledger, read_all
from tests.client.servers import (
    RestartableNameServer,
    create_topic,
    start_broker,
    watch_offsets,
)
from tests.programs.processes import BrokerProcess
from tests.until import until

GROUP, TOPIC, QUEUES = "group", "orders", 4
TOPICS = {TOPIC: QUEUES, f"%RETRY%{GROUP}": 1}
SETTINGS = ConsumerSettings(
    consume_from="first", handover=0.1, commit_interval=0.2, rebalance_interval=1.0
)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_module, "ROUTE_INTERVAL", 0.5)
    monkeypatch.setattr(instance_module, "HEARTBEAT_INTERVAL", 1.0)


class Cluster:
    """Two brokers and two name servers, with a producer and two consumers at work."""

    def __init__(
        self, names: list[RestartableNameServer], brokers: dict[str, BrokerProcess]
    ) -> None:
        self.names, self.brokers = names, brokers
        self.ledger = Ledger()
        self.sent: list[tuple[float, SendResult]] = []
        self.failures: list[Exception] = []
        self.is_done = False

    async def send(self, producer: Producer) -> None:
        """Send messages until `is_done`; none is cancelled, so each that is stored is known."""
        number = 0
        while not self.is_done:
            number += 1
            label = f"m{number}"
            try:
                result = await producer.send(Message(topic=TOPIC, body=f"{label} ".encode() * 9))
            except Exception as error:  # noqa: BLE001 (the test says which may happen)
                self.failures.append(error)
            else:
                self.ledger.acknowledge(label)
                self.sent.append((time.monotonic(), result))
            await asyncio.sleep(0.01)

    async def handle(self, message: ConsumedMessage, who: str) -> None:
        """Handle a message; every twentieth one is redelivered first."""
        self.ledger.deliver(message, who)
        await asyncio.sleep(0.002)
        if message.queue_offset % 20 == 7 and not message.reconsume_times:
            if await message.retry_later(1):
                self.ledger.fail(message, is_sent_back=True)
            return
        self.ledger.finish(message)

    def sent_to(self, broker: str, since: float) -> int:
        """Return how many messages a broker acknowledged since a time."""
        return sum(at > since and sent.queue.broker_name == broker for at, sent in self.sent)

    def read_from(self, broker: str, since: float) -> int:
        """Return how many messages of a broker were delivered since a time."""
        return sum(
            each.at > since and each.place.queue.broker_name == broker
            for each in self.ledger.deliveries
        )

    def consumed_all(self) -> bool:
        """Say whether each acknowledged message was consumed."""
        return not self.ledger.unconsumed


@pytest.fixture
def ports() -> list[int]:
    return [free_port(), free_port()]


@pytest.fixture
def brokers(tmp_path: Path, ports: list[int]) -> Iterator[dict[str, BrokerProcess]]:
    names = ";".join(f"127.0.0.1:{port}" for port in ports)
    settings = {"flushDiskType": "SYNC_FLUSH"}
    with ExitStack() as undo:
        found: dict[str, BrokerProcess] = {}
        for name in ("broker-a", "broker-b"):
            found[name] = start_broker(tmp_path, name, names, settings)
            undo.callback(found[name].kill)
        yield found


@asynccontextmanager
async def at_work(ports: list[int], brokers: dict[str, BrokerProcess]) -> AsyncIterator[Cluster]:
    """Send and consume while the block runs; then check what became of the messages."""
    names = [RestartableNameServer(port) for port in ports]
    for each in names:
        await each.start()
    for process in brokers.values():
        await create_topic(process.address, TOPIC, QUEUES)
    addresses = {name: process.address for name, process in brokers.items()}
    cluster, text = Cluster(names, brokers), ";".join(f"127.0.0.1:{port}" for port in ports)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch_offsets(addresses, GROUP, TOPICS, cluster.ledger))
        before = asyncio.all_tasks()
        async with (
            Producer(text) as producer,
            Consumer(text, GROUP, TOPIC, settings=SETTINGS) as one,
            Consumer(text, GROUP, TOPIC, settings=SETTINGS) as two,
        ):
            for who, consumer in (("one", one), ("two", two)):
                tasks.create_task(
                    consumer.run(lambda message, who=who: cluster.handle(message, who))
                )
            await until(lambda: len(one.queues) + len(two.queues) >= 2 * QUEUES)
            sending = tasks.create_task(cluster.send(producer))
            await until(lambda: min(cluster.read_from(name, 0) for name in brokers) > 20)
            yield cluster
            cluster.is_done = True
            await sending
            await until(cluster.consumed_all)
        assert await tasks_left(before) == set()
        watching.cancel()
    stored = await read_all(text, list(TOPICS))
    assert cluster.ledger.violations(stored) == []
    assert not cluster.failures
    for each in names:
        await each.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_broker_leaves_and_returns(
    number: signal.Signals, ports: list[int], brokers: dict[str, BrokerProcess]
) -> None:
    async def run() -> None:
        async with at_work(ports, brokers) as cluster:
            leaving = brokers["broker-b"]
            await asyncio.to_thread(leaving.stop, number)
            left = time.monotonic()
            await until(lambda: cluster.sent_to("broker-a", left) > 50)
            await until(lambda: cluster.read_from("broker-a", left) > 50)
            await asyncio.to_thread(leaving.start)
            returned = time.monotonic()
            await until(lambda: cluster.sent_to("broker-b", returned) > 50)
            await until(lambda: cluster.read_from("broker-b", returned) > 50)

    asyncio.run(run())


# Each run stops one name server, and then the other one.
@pytest.mark.parametrize("which", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_name_server_leaves_and_returns(
    which: int, ports: list[int], brokers: dict[str, BrokerProcess]
) -> None:
    async def run() -> None:
        async with at_work(ports, brokers) as cluster:
            await cluster.names[which].stop()
            await used_by_both(cluster)
            await cluster.names[which].start()
            await used_by_both(cluster)
            await cluster.names[1 - which].stop()
            await known_at(cluster.names[which], len(brokers))
            await used_by_both(cluster)
            await cluster.names[1 - which].start()
            await used_by_both(cluster)

    asyncio.run(run())


async def known_at(name_server: RestartableNameServer, count: int) -> None:
    """Wait until so many brokers have registered the topic at a name server."""
    async with clusters.Cluster(name_server.address) as seen, asyncio.timeout(PATIENCE):
        while True:
            route = await seen.route_known(TOPIC)
            if route is not None and len(route.broker_datas) == count:
                break
            await asyncio.sleep(0.05)


async def used_by_both(cluster: Cluster) -> None:
    """Wait until new messages were sent to, and read from, both brokers."""
    begun = time.monotonic()
    for name in cluster.brokers:
        await until(lambda name=name: cluster.sent_to(name, begun) > 50)
        await until(lambda name=name: cluster.read_from(name, begun) > 50)
