"""Messages that a consumer could not consume: redelivered later, or put to the dead-letter topic.

Upstream: `AbstractSendMessageProcessor.consumerSendMsgBack`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.topics import UNIT_SUBSCRIPTION, any_queue
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_WRITE
from mqlake.formats.own_properties import POP_GROUP
from mqlake.formats.properties import DELAY, ORIGIN_MESSAGE_ID, RETRY_TOPIC
from mqlake.formats.property_edits import edit
from mqlake.formats.record import Record
from mqlake.protocol import naming
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.send import SendBackHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutStatus
from mqlake.store.stored import Stored, inner_message, message_of, read_stored, returned_once_more

_FIRST_LEVEL = 3
"""Delay level of the first redelivery of a message, if the consumer names none."""


class SendBack:
    """Serves consumers that send messages back."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (Route(RequestCode.CONSUMER_SEND_MSG_BACK, self._send_back, Permission.SUBSCRIBE),)

    async def _send_back(self, peer: Peer, request: Command) -> Command:
        header = request.header(SendBackHeader)
        if self._runtime.settings.is_slave:
            return await self._pass_on(request, header)
        group = self._group(header.group, peer)
        if group.retry_queue_nums > 0:
            await self._put_again(header, group)
        return response(request)

    async def _pass_on(self, request: Command, header: SendBackHeader) -> Command:
        """Answer a slave's consumer with the answer of the master, which has the same log."""
        forwarder, name = self._state.forwarder, self._runtime.settings.broker_name
        answer = await forwarder.ask(name, RequestCode.CONSUMER_SEND_MSG_BACK, header)
        return response(request, answer.code, remark=answer.remark)

    def _group(self, name: str, peer: Peer) -> SubscriptionGroup:
        group = self._state.groups.get_or_make(name, peer.address)
        if group is None:
            reason = f"subscription group not exist, {name}"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        settings = self._runtime.settings
        if not settings.broker_permission & PERM_WRITE:
            reason = f"the broker[{settings.broker_ip1}] sending message is forbidden"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        return group

    async def _put_again(self, header: SendBackHeader, group: SubscriptionGroup) -> None:
        retry = self._retry_topic(header, group)
        raw = self._state.store.reads.raw_at(header.offset)
        stored = read_stored(raw) if raw is not None else None
        if stored is None:
            reason = f"look message by offset failed, {header.offset}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        stored = inner_message(stored, header.origin_msg_id)
        if stored is None:
            # Clients then send the message itself.
            reason = (
                f"there is no message {header.origin_msg_id} in the inner batch at {header.offset}"
            )
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, reason)
        topic, is_dead = retry, self._is_dead(header, group, stored.record)
        if is_dead:
            topic = naming.dlq_topic(group.group_name)
            self._state.topics.make(topic, naming.DLQ_QUEUES)
        store, message = self._state.store, _again(header, group, stored, topic, is_dead=is_dead)
        (put,) = await store.appends.confirm([store.appends.again(message, may_wait=not is_dead)])
        if put.count and put.status is not PutStatus.UNKNOWN_ERROR:
            found = stored.record
            origin = found.properties.get(RETRY_TOPIC, found.topic)
            self._state.stats.sent_back(group.group_name, origin)
            if is_dead:
                self._state.stats.dead_letter(group.group_name, origin)
            return
        why = f"group {group.group_name} sent it back; {topic}: {put.reason}"
        if not put.is_permanent or not store.redelivery.put_aside(stored, why):
            raise RemotingError(ResponseCode.SYSTEM_ERROR, f"{put.status}: {put.reason}")

    def _retry_topic(self, header: SendBackHeader, group: SubscriptionGroup) -> str:
        name = naming.retry_topic(group.group_name)
        sys_flag = UNIT_SUBSCRIPTION if header.unit_mode else 0
        topic = self._state.topics.make(name, group.retry_queue_nums, sys_flag=sys_flag)
        if not topic.perm & PERM_WRITE:
            reason = f"the topic[{name}] sending message is forbidden"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        # `retryQueueNums` may have been raised since the topic was created. Upstream then puts
        # messages to queues that no route shows.
        self._state.topics.add_queues(topic, group.retry_queue_nums)
        return name

    @staticmethod
    def _is_dead(header: SendBackHeader, group: SubscriptionGroup, found: Record) -> bool:
        most = header.max_reconsume_times
        most = group.retry_max_times if most is None else most
        return header.delay_level < 0 or found.reconsume_times >= most


def _again(
    header: SendBackHeader, group: SubscriptionGroup, stored: Stored, topic: str, *, is_dead: bool
) -> Message:
    """Return the message to put for one that was sent back."""
    record = stored.record
    origin = {RETRY_TOPIC: record.topic, ORIGIN_MESSAGE_ID: record.message_id}
    added = {name: text for name, text in origin.items() if name not in record.properties}
    queues, level = naming.DLQ_QUEUES, 0
    if not is_dead:
        queues = group.retry_queue_nums
        level = header.delay_level or _FIRST_LEVEL + record.reconsume_times
    added[DELAY] = str(level)
    # A producer may have copied the other one from a message that another group popped.
    data = edit(stored.properties, (DELAY, POP_GROUP), added)
    message = message_of(record, topic, any_queue(queues), data, record.sys_flag)
    return msgspec.structs.replace(message, reconsume_times=returned_once_more(record))
