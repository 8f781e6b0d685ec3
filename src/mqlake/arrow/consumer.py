"""Read messages as one of a group, in batches of Arrow columns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import islice
from typing import cast

from mqlake.arrow.batch import ArrowBatch
from mqlake.arrow.columns import to_columns, warm_up
from mqlake.arrow.record_run import RecordRun, read_run
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.group_member import GroupMember
from mqlake.client.consumer.ownership import Listener
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.subscriptions import Wanted
from mqlake.client.errors import ClientError
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.command import Body

SETTINGS = ConsumerSettings(
    pull_size=1024,
    pull_bytes=4 << 20,
    queue_messages=2048,
    queue_bytes=32 << 20,
    queue_span=2**31,
)
"""Settings for columns. `queue_messages` counts pulls; brokers give 32 messages at most in one,
unless `maxTransferCountOnMessageInMemory` says otherwise."""

_AT_ONCE = 32
"""Messages that a broker is asked to redeliver at once."""


class ArrowConsumer(GroupMember):
    """Reads topics as one of a group; for the tasks of one event loop.

        async with ArrowConsumer("localhost:9876", "reports", "orders") as consumer:
            async for batch in consumer.arrow_batches():
                ...
                await batch.ack()

    Other members of the group may be consumers of any kind. As with them, a message comes at least
    once, and may come twice.

    Args:
        name_servers, group, topics, instance, unit, namespace, on_assigned, on_revoked: as of
            `mqlake.client.Consumer`.
        settings: how it behaves. It cannot pop, or note traces.

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
    ) -> None:
        if settings.trace or not settings.client_rebalance:
            raise ClientError("an ArrowConsumer has neither `trace` nor `client_rebalance=False`")
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
        )

    async def start(self) -> None:
        """Join the group, once the kernels are loaded; `async with` does it.

        Kernels that nobody has used on this machine are compiled, which takes a minute.

        Raises:
            ClientError: this process has a consumer of the group under the same instance name.
        """
        await asyncio.to_thread(warm_up)
        await super().start()

    async def arrow_batches(
        self, most_pulls: int = 64, wait: float = 0.01
    ) -> AsyncIterator[ArrowBatch]:
        """Yield messages of one queue at a time, each batch to be finished.

        Args:
            most_pulls: how many pulls make up a batch at most.
            wait: seconds for which messages are gathered if there are few.

        Raises:
            ClosedError: the consumer was closed before.
        """
        self._require_open()
        inbox, are_few = self._parts.inbox, True
        while await inbox.wait():
            await asyncio.sleep(wait if are_few else 0)
            are_few = True
            for _ in range(len(inbox)):
                taken = inbox.take_ready(most_pulls)
                if taken is None:
                    break
                runs = cast("Sequence[RecordRun]", taken[1])
                are_few &= len(runs) < most_pulls
                yield ArrowBatch(runs, *to_columns(runs))

    def _decode(
        self, data: Body, queue: MessageQueue, wanted: Wanted, first: int
    ) -> list[ConsumedMessage]:
        run = read_run(data, queue, wanted, first, self._namespace)
        return [run] if run else []

    async def _send_back(self, message: ConsumedMessage, level: int, most: int) -> None:
        calls, messages = self._parts.calls, cast("RecordRun", message).messages()
        while some := list(islice(messages, _AT_ONCE)):
            await asyncio.gather(*(calls.send_back(each, level, most) for each in some))
