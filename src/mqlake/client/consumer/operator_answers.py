"""Answer operators: `mqadmin consumerStatus`, `getConsumerStatus`, `queryMsgById -d`.

Upstream: `DefaultMQPushConsumerImpl.consumerRunningInfo`, `consumeMessageDirectly`.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.statistics import Statistics
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.consumer.workers import Workers
from mqlake.client.received import decode_messages
from mqlake.protocol.bodies.heartbeat import ConsumerData
from mqlake.protocol.bodies.queue_tables import encode_queue, encode_with_table, join_queues
from mqlake.protocol.bodies.running_info import ProcessQueueInfo
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import VERSION_NAME, Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.namespace import Namespace
from mqlake.storage.clock import SystemClock

_MIB = 1 << 20


@dataclass(frozen=True)
class ConsumerOperatorAnswers:
    """Answers for one consumer, from its current state.

    Attributes:
        started: when the consumer was created, in milliseconds since 1970.
    """

    data: ConsumerData
    name_servers: str
    settings: ConsumerSettings
    started: int
    wanted: Sequence[SelectedTopic]
    queues: Iterable[QueueMessages]
    statistics: Statistics
    workers: Workers
    namespace: Namespace

    def running_info(self, *, with_stacks: bool) -> bytes:
        """Return the answer to GET_CONSUMER_RUNNING_INFO.

        Args:
            with_stacks: adds the stack of each task of the event loop.
        """
        to_epoch = SystemClock().milliseconds() / 1000 - asyncio.get_running_loop().time()
        entries = (encode_queue(each.queue, _info(each, to_epoch)) for each in self.queues)
        info: dict[str, object] = {
            "properties": self._properties(),
            "subscriptionSet": [each.data(each.version) for each in self.wanted],
            "mqTable": join_queues(entries),
            "mqPopTable": {},
            "statusTable": {each.topic: self.statistics.status(each.topic) for each in self.wanted},
            "userConsumerInfo": {},
        }
        if with_stacks:
            info["jstack"] = _stacks()
        return encode_with_table(info)

    def queue_offsets(self, topic: str) -> bytes:
        """Return the answer to GET_CONSUMER_STATUS_FROM_CLIENT: the offsets of a topic's queues."""
        entries = (
            encode_queue(each.queue, offset)
            for each in self.queues
            if each.queue.topic == topic and (offset := each.committed_offset) is not None
        )
        return encode_with_table({"consumerTable": {}, "messageQueueTable": join_queues(entries)})

    async def consume_directly(self, command: Command) -> bytes:
        """Have the consumer's handler handle the message of CONSUME_MESSAGE_DIRECTLY.

        Raises:
            RemotingError: the consumer has no handler, or the request no message.
        """
        broker_name = command.fields.get("brokerName", "")
        found = decode_messages(command.body, broker_name, ConsumedMessage)
        if not found:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "the request has no message")
        message = found[0]
        message.topic = self.namespace.unwrap(message.topic)
        in_order = self.settings.in_order
        return encode_body(await self.workers.handle_directly(message, in_order=in_order))

    def _properties(self) -> dict[str, str]:
        return {
            "PROP_NAMESERVER_ADDR": self.name_servers,
            "PROP_CONSUME_TYPE": self.data.consume_type,
            "PROP_CLIENT_VERSION": VERSION_NAME,
            "PROP_CONSUMEORDERLY": "true" if self.settings.in_order else "false",
            "PROP_THREADPOOL_CORE_SIZE": str(self.workers.concurrency),
            "PROP_CONSUMER_START_TIMESTAMP": str(self.started),
            "consumerGroup": self.data.group_name,
            "messageModel": self.data.message_model,
            "consumeFromWhere": self.data.consume_from_where,
            "maxReconsumeTimes": str(self.settings.max_retries),
        }


def _info(held: QueueMessages, to_epoch: float) -> ProcessQueueInfo:
    first, last = held.bounds or (0, 0)
    return ProcessQueueInfo(
        commit_offset=-1 if held.committed_offset is None else held.committed_offset,
        cached_msg_min_offset=first,
        cached_msg_max_offset=last,
        cached_msg_count=len(held),
        cached_msg_size=held.bytes // _MIB,
        locked=held.is_locked,
        dropped=held.is_dropped,
        last_pull_timestamp=round(1000 * (held.last_pull + to_epoch)),
        last_consume_timestamp=round(1000 * (held.last_taken + to_epoch)),
    )


def _stacks() -> str:
    text = io.StringIO()
    for task in asyncio.all_tasks():
        task.print_stack(file=text)
    return text.getvalue()
