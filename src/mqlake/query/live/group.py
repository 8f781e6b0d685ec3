"""Commit the offsets of a query as those of a consumer group, so that its lag can be monitored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.instance import ClientInstance
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.heartbeat import ACTIVE, ConsumerData, Heartbeat
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.clients import UnregisterClientHeader
from mqlake.protocol.namespace import Namespace
from mqlake.query.live.brokers import name_of
from mqlake.query.reading.log import logger

log = logger()

_TIMEOUT = 5.0
"""Seconds."""


class CommittedOffsets:
    """The offsets of a group at the brokers.

    A failure is logged and not raised: the query continues from its checkpoint, and the next
    micro-batch commits again.
    """

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance, self._group = instance, group
        self._calls = BrokerCalls(instance, group, Namespace())
        self._introduced: set[str] = set()
        self._committed: dict[MessageQueue, int] = {}

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Commit the offsets that differ from the last ones."""
        due = {
            queue: offset
            for queue, offset in offsets.items()
            if self._committed.get(queue) != offset
        }
        for topic in {queue.topic for queue in due} - self._instance.routes.topics:
            await self._instance.routes.load(topic)
        for name in sorted({queue.broker_name for queue in due} - self._introduced):
            await self._introduce(name)
        await asyncio.gather(*(self._commit(*one) for one in due.items()))

    async def _commit(self, queue: MessageQueue, offset: int) -> None:
        try:
            await self._calls.commit_offset(queue, offset)
        except MqlakeError as error:
            log.warning("group %s, %s: not committed: %s", self._group, name_of(queue), error)
        else:
            self._committed[queue] = offset

    async def _introduce(self, broker_name: str) -> None:
        """Be a member of the group for a moment.

        This makes a broker create the group, if it may, and its retry topic, without which `mqadmin
        consumerProgress` does not find the group.
        """
        address = self._instance.routes.master(broker_name)
        if address is None:
            return
        client_id = self._instance.client_id
        member = ConsumerData(group_name=self._group, consume_type=ACTIVE)
        beat = Heartbeat(client_id=client_id, consumer_data_set=[member])
        gone = UnregisterClientHeader(client_id=client_id, consumer_group=self._group)
        try:
            ask = self._instance.cluster.ask
            await ask(address, RequestCode.HEART_BEAT, None, encode_body(beat), _TIMEOUT)
            await ask(address, RequestCode.UNREGISTER_CLIENT, gone, b"", _TIMEOUT)
        except MqlakeError as error:
            log.warning("group %s: %s does not create it: %s", self._group, address, error)
        else:
            self._introduced.add(broker_name)
