"""The topics of queues: create, count, delete."""

from __future__ import annotations

import asyncio

from mqlake.admin import groups
from mqlake.admin import topics as admin_topics
from mqlake.admin.admin import Admin
from mqlake.client.routes import TopicRoute
from mqlake.errors import MqlakeError
from mqlake.formats.config.topics import Topic
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.naming import retry_topic

_PATIENCE = 5.0
_AGAIN = 0.05


class QueueTopics:
    """Creates, counts and deletes topics, by requests to brokers and name servers.

    Args:
        group: the consumer group of the queues.
        queues: the number of queues of a new topic, on each broker.
    """

    def __init__(self, admin: Admin, group: str, queues: int) -> None:
        self._admin, self._group, self._queues = admin, group, queues
        self._known: set[str] = set()

    async def exists(self, topic: str) -> bool:
        """Return whether a topic exists.

        Raises:
            MqlakeError: no name server answers, so it is unknown whether the topic exists.
        """
        try:
            await self._admin.route(topic)
        except RemotingError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            return False
        return True

    async def route(self, topic: str) -> TopicRoute:
        """Return the queues of a topic, which is created if missing.

        Raises:
            MqlakeError: it does not exist, and cannot be created.
        """
        await self.ensure(topic)
        return TopicRoute(topic, await self._admin.route(topic))

    async def ensure(self, topic: str, queues: int | None = None) -> None:
        """Create a topic on all brokers if it does not exist.

        Args:
            queues: on each broker; None for the default of this object.

        Raises:
            MqlakeError: it does not exist, and cannot be created.
        """
        if topic in self._known:
            return
        if not await self.exists(topic):
            count = queues or self._queues
            wanted = Topic(topic_name=topic, read_queue_nums=count, write_queue_nums=count)
            await admin_topics.update(self._admin, wanted, None, None)
            await self._wait(topic)
        self._known.add(topic)

    def forget(self, topic: str) -> None:
        """Forget whether a topic exists, so that this is checked before the next use."""
        self._known.discard(topic)

    async def size(self, topic: str, group: str) -> int:
        """Return the approximate number of messages that a group has not acknowledged."""
        try:
            ends = await admin_topics.status(self._admin, topic)
        except RemotingError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return 0
            raise
        rows = await groups.progress_on(self._admin, group, topic)
        at = {
            (row.broker_name, row.queue_id): row.consumer_offset
            for row in rows
            if row.topic == topic
        }
        return sum(
            end.max_offset - max(end.min_offset, at.get((end.broker_name, end.queue_id), 0))
            for end in ends
        )

    async def delete(self, topic: str) -> None:
        """Delete a topic and its retry topic from all brokers, with all their messages."""
        for name in (topic, f"{retry_topic(self._group)}_{topic}"):
            self.forget(name)
            try:
                for cluster in await admin_topics.clusters(self._admin, name):
                    await admin_topics.delete(self._admin, name, cluster)
            except RemotingError as error:
                if error.code != ResponseCode.TOPIC_NOT_EXIST:
                    raise

    async def _wait(self, topic: str) -> None:
        """Wait until the name servers know a topic that was created."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while not await self.exists(topic):
            if asyncio.get_running_loop().time() >= deadline:
                raise MqlakeError(f"topic {topic} was created, but no name server knows it yet")
            await asyncio.sleep(_AGAIN)
