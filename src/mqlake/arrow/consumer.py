"""Read messages as a member of a group, in batches of Arrow columns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import cast

from mqlake.arrow.batch import ArrowBatch
from mqlake.arrow.columns import TooLongError, to_columns, warm_up
from mqlake.arrow.record_run import RecordRun, read_run
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.group_member import GroupMember
from mqlake.client.consumer.pulling import DecodedPull
from mqlake.client.consumer.queues.ownership import Listener
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.errors import ClientError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.command import Body
from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls

SETTINGS = ConsumerSettings(
    pull_size=1024,
    pull_bytes=4 << 20,
    queue_messages=2048,
    queue_bytes=32 << 20,
    queue_span=2**31,
)
"""Settings for columns.

`queue_messages` counts pulls; one pull returns 32 messages at most, unless
`maxTransferCountOnMessageInMemory` says otherwise.
"""

_MOST_REQUESTS = 32
"""Maximum number of messages that brokers are asked to redeliver at the same time."""


class ArrowConsumer(GroupMember):
    """Reads topics as a member of a group; for the tasks of one event loop.

        async with ArrowConsumer("localhost:9876", "reports", "orders") as consumer:
            async for batch in consumer.arrow_batches():
                ...
                await batch.ack()

    Other members of the group may be consumers of any kind. As with them, delivery is
    at-least-once: a message may be delivered twice.

    Args:
        name_servers, group, topics, instance, unit, namespace, on_assigned, on_revoked, tls,
        credentials: as for `mqlake.client.Consumer`.
        settings: how the consumer behaves. It cannot pop, or trace messages.

    Raises:
        ClientError: the name of the group, or a setting, cannot be used.
    """

    def __init__(
        self,
        name_servers: str,
        group: str,
        topics: Mapping[str, str] | Sequence[str] | str,
        *,
        settings: ConsumerSettings = SETTINGS,
        instance: str = DEFAULT_INSTANCE,
        unit: str | None = None,
        namespace: str = "",
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        if settings.trace or not settings.client_rebalance:
            raise ClientError("an ArrowConsumer cannot use `trace` or `client_rebalance=False`")
        super().__init__(
            name_servers,
            group,
            topics,
            settings=settings,
            instance=instance,
            unit=unit,
            namespace=namespace,
            on_assigned=on_assigned,
            on_revoked=on_revoked,
            tls=tls,
            credentials=credentials,
        )
        self._requests = asyncio.Semaphore(_MOST_REQUESTS)

    async def start(self) -> None:
        """Load the kernels, and join the group; `async with` does it.

        Kernels that were never used on this machine are compiled first, which takes a minute.

        Raises:
            ClientError: this process already has a consumer of the group under the same instance
                name.
        """
        await asyncio.to_thread(warm_up)
        await super().start()

    async def arrow_batches(
        self, most_pulls: int = 64, wait: float = 0.01
    ) -> AsyncIterator[ArrowBatch]:
        """Yield messages of one queue at a time; each batch must be finished.

        Args:
            most_pulls: the maximum number of pulls in a batch.
            wait: seconds for which messages are collected if there are few.

        Raises:
            ClosedError: the consumer was already closed.
            ClientError: `most_pulls` is below 1.
        """
        self._require_open()
        if most_pulls < 1:
            raise ClientError(f"most_pulls must be at least 1, not {most_pulls}")
        inbox, are_few = self._parts.inbox, True
        while await inbox.wait():
            try:
                await asyncio.sleep(wait if are_few else 0)
            except BaseException:
                inbox.wake_another()
                raise
            are_few = True
            for _ in range(len(inbox)):
                taken = inbox.take_ready(most_pulls)
                if taken is None:
                    break
                are_few &= len(taken[1]) < most_pulls
                yield self._batch(cast("Sequence[RecordRun]", taken[1]))

    def _batch(self, runs: Sequence[RecordRun]) -> ArrowBatch:
        """Return a batch of as many runs as fit into one; give the others back."""
        most = len(runs)
        try:
            while True:
                try:
                    found = to_columns(runs[:most])
                except TooLongError:
                    most //= 2
                else:
                    break
        except BaseException:
            most = 0
            raise
        finally:
            for run in runs[most:]:
                self._finishing.give_back(run)
        return ArrowBatch(runs[:most], *found)

    def _decode(
        self, data: Body, queue: MessageQueue, wanted: SelectedTopic, first: int
    ) -> DecodedPull:
        run, last = read_run(data, queue, wanted, first, self._namespace)
        return DecodedPull((run,) if run else (), last)

    async def _send_back(self, message: ConsumedMessage, level: int, most: int) -> None:
        """Have brokers redeliver each message of a run, except those that they already redeliver.

        Raises:
            MqlakeError: some messages are not accepted; all were tried.
        """
        run = cast("RecordRun", message)

        async def send_back(number: int) -> None:
            async with self._requests:
                await self._parts.calls.send_back(run.message(number), level, most)
            run.sent_back.add(number)

        left = set(range(run.message_count())) - run.sent_back
        results = await asyncio.gather(*map(send_back, sorted(left)), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
