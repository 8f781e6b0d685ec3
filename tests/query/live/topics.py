"""Topics of a running broker, with numbered messages."""

from __future__ import annotations

import asyncio
from itertools import count

from mqlake.admin import Admin, topics
from mqlake.client import Message, MessageQueue
from mqlake.client.blocking import Producer
from mqlake.client.cluster import Cluster
from mqlake.testing import RunningBroker
from tests.broker.running import PATIENCE
from tests.client.servers import create_topic, wait_for_dispatch

_names = count()

BROKER = "broker-a"


async def wait_for_route(name_server: str, topic: str) -> None:
    """Wait until the name server knows a topic: a broker waits for that two seconds at most."""
    async with Cluster(name_server) as cluster, asyncio.timeout(PATIENCE):
        while True:
            if await cluster.route_known(topic) is not None:
                break
            await asyncio.sleep(0.01)


class NumberedTopic:
    """A topic of a name of its own, whose messages have their number as key.

    Attributes:
        sent: the key of each message, by queue.
    """

    def __init__(self, running: RunningBroker, queues: int = 2) -> None:
        self.name = f"Numbered{next(_names)}"
        self._running, self.queues = running, queues
        self.sent: dict[int, list[str]] = {number: [] for number in range(queues)}
        self._number = 0
        self._create()

    def _create(self) -> None:
        async def create() -> None:
            await create_topic(self._running.address, self.name, self.queues)
            await wait_for_route(self._running.name_server, self.name)

        asyncio.run(create())

    def send(self, count: int, queue: int | None = None, tags: str = "a", size: int = 0) -> None:
        """Send messages, by turns to all queues or to one, and wait until they are dispatched."""
        # What is sent again, for the broker answers late, is stored twice.
        with Producer(self._running.name_server, timeout=PATIENCE) as producer:
            for number in range(self._number, self._number + count):
                to = number % self.queues if queue is None else queue
                key = f"{self.name}-{number}"
                message = Message(
                    topic=self.name, body=key.encode() + b"x" * size, keys=key, tags=tags
                )
                producer.send(message, queue=MessageQueue(self.name, BROKER, to))
                self.sent[to].append(key)
            self._number += count
        ends = {number: len(keys) for number, keys in self.sent.items()}
        asyncio.run(wait_for_dispatch(self._running.address, self.name, ends))

    @property
    def keys(self) -> list[str]:
        """The keys of all messages."""
        return sorted(key for keys in self.sent.values() for key in keys)

    def delete(self) -> None:
        """Delete the topic with its messages."""

        async def delete() -> None:
            async with Admin(self._running.name_server) as admin:
                await topics.delete(admin, self.name, "DefaultCluster")

        asyncio.run(delete())

    def create_anew(self) -> None:
        """Delete the topic and create it again, without messages."""
        self.delete()
        self._create()
        self.sent = {number: [] for number in range(self.queues)}
