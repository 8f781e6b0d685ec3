"""Read messages as a member of a group (upstream: `DefaultMQPushConsumer`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.group_member import GroupMember
from mqlake.client.consumer.workers import Handler


class Consumer(GroupMember):
    """Reads topics as a member of a group; for the tasks of one event loop.

        topics = {"orders": "paid || refunded"}
        async with Consumer("localhost:9876", "billing", topics) as consumer:
            async for message in consumer:
                ...
                await message.ack()

    A message that is not acknowledged is redelivered: after a crash, when another consumer is
    assigned the queue, or after `retry_later`. Delivery is at-least-once: a message may be
    delivered twice.

    Args:
        name_servers: "host:port", several separated by `;`.
        group: the consumer group. All its members must have the same topics and expressions.
        topics: an expression for each topic: tags, ALL for all messages, or `Sql`.
        settings: how the consumer behaves.
        instance: a name that tells the clients of one machine apart.
        unit: upstream's `unitName`.
        namespace: the namespace of its topics and its group. Messages have topics without it,
            queues have the cluster's names.
        on_assigned: called with queues after they have been assigned to the consumer.
        on_revoked: called with queues before the consumer gives them up. Until it returns, their
            messages can be acknowledged and the group does not rebalance.
        tls: how its connections use TLS; None for clear text.
        credentials: sign its requests; None for brokers without authentication.

    Raises:
        ClientError: the name of the group cannot be used.
    """

    def __aiter__(self) -> AsyncIterator[ConsumedMessage]:
        return self._messages()

    async def _messages(self) -> AsyncIterator[ConsumedMessage]:
        self._require_open()
        while (taken := await self._parts.inbox.take(1)) is not None:
            yield taken[1][0]

    async def receive(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 (how long there may be nothing)
    ) -> ConsumedMessage | None:
        """Return the next message; None if none arrives in time, or the consumer is closed
        meanwhile.

        Args:
            timeout: seconds; None waits forever.

        Raises:
            ClosedError: the consumer was already closed.
        """
        self._require_open()
        try:
            async with asyncio.timeout(timeout):
                taken = await self._parts.inbox.take(1)
        except TimeoutError:
            return None
        return taken[1][0] if taken else None

    async def batches(self, most: int = 32) -> AsyncIterator[Sequence[ConsumedMessage]]:
        """Yield up to `most` messages of one queue at a time; each is to be finished by itself."""
        self._require_open()
        while (taken := await self._parts.inbox.take(most)) is not None:
            yield taken[1]

    async def run(self, handler: Handler, *, concurrency: int = 20) -> None:
        """Call a function with each message, until the consumer is closed.

        A message is acknowledged if the function returns, and redelivered if it raises.

        Args:
            concurrency: the number of messages that are handled at the same time; in order, these
                are of different queues.
        """
        self._require_open()
        await self._workers.run(handler, concurrency)
