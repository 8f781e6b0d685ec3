"""Lock queues at their brokers, and release the locks.

Upstream: `MQClientAPIImpl.lockBatchMQ`, `unlockBatchMQ`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from mqlake.client.errors import NoRouteError
from mqlake.client.instance import ClientInstance
from mqlake.formats import fastjson
from mqlake.formats.config import convert
from mqlake.protocol.bodies.locks import LockQueues
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import oneway

_TIMEOUT = 1.0


class _LockedQueues(msgspec.Struct):
    queues: list[MessageQueue] = msgspec.field(name="lockOKMQSet", default=[])


class LockCalls:
    """The requests of one consumer of one group. Topics are as brokers know them."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance, self._group = instance, group

    def by_broker(self, queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
        """Return queues by the names of their brokers."""
        found: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            found.setdefault(self._instance.routes.broker_of(queue), []).append(queue)
        return found

    async def lock(self, broker_name: str, queues: Sequence[MessageQueue]) -> list[MessageQueue]:
        """Return the queues of a broker that are now locked for this client.

        Raises:
            MqlakeError: the broker does not answer.
        """
        answer = await self._instance.cluster.ask(
            self._master(broker_name),
            RequestCode.LOCK_BATCH_MQ,
            None,
            self._body(queues),
            _TIMEOUT,
        )
        return convert(fastjson.loads(bytes(answer.body)), _LockedQueues).queues

    async def unlock(self, broker_name: str, queues: Sequence[MessageQueue]) -> None:
        """Release locks.

        Raises:
            MqlakeError: the broker cannot be reached. Its locks expire after a minute.
        """
        command = oneway(RequestCode.UNLOCK_BATCH_MQ, body=self._body(queues))
        await self._instance.cluster.client.oneway(self._master(broker_name), command)

    def _body(self, queues: Sequence[MessageQueue]) -> bytes:
        return encode_body(
            LockQueues(
                consumer_group=self._group,
                client_id=self._instance.client_id,
                mq_set=list(queues),
            )
        )

    def _master(self, broker_name: str) -> str:
        address = self._instance.routes.master(broker_name)
        if address is None:
            raise NoRouteError(f"broker {broker_name} has no master now")
        return address
