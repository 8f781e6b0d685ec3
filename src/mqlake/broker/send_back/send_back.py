"""Messages that a consumer could not consume: delivered again later, or put to the dead letters.

Upstream: `AbstractSendMessageProcessor.consumerSendMsgBack`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mqlake.broker import naming
from mqlake.broker.parts import Parts
from mqlake.broker.topics import UNIT_SUBSCRIPTION, any_queue
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_WRITE
from mqlake.formats.properties import DELAY, ORIGIN_MESSAGE_ID, RETRY_TOPIC, encode_pairs
from mqlake.formats.record import Record
from mqlake.remoting.codes import RequestCode, ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import RemotingError
from mqlake.remoting.headers.send import SendBackHeader
from mqlake.remoting.server import Handler
from mqlake.store.append.put_result import PutError
from mqlake.store.delivery.put_again import message_of

_FIRST_LEVEL = 3
"""Delay level of the first return of a message, where the consumer names none."""


class SendBack:
    """Answers consumers that give messages back."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def handlers(self) -> Mapping[int, Handler]:
        """Return what answers each request code."""
        return {RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back}

    async def _send_back(self, _peer: Peer, request: Command) -> Command:
        header = request.header(SendBackHeader)
        group = self._group(header.group)
        if group.retry_queue_nums > 0:
            await self._put_again(header, group)
        return response(request)

    def _group(self, name: str) -> SubscriptionGroup:
        group = self._parts.groups.get_or_make(name)
        if group is None:
            reason = f"subscription group not exist, {name}"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        settings = self._parts.settings
        if not settings.broker_permission & PERM_WRITE:
            reason = f"the broker[{settings.broker_ip1}] sending message is forbidden"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        return group

    async def _put_again(self, header: SendBackHeader, group: SubscriptionGroup) -> None:
        retry = self._retry_topic(header, group)
        found = self._parts.store.core.reads.record_at(header.offset)
        if found is None:
            reason = f"look message by offset failed, {header.offset}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        pairs = dict(found.properties)
        pairs.setdefault(RETRY_TOPIC, found.topic)
        pairs.setdefault(ORIGIN_MESSAGE_ID, found.message_id)
        pairs.pop(DELAY, None)
        if self._is_dead(header, group, found):
            topic, queues = naming.dlq_topic(group.group_name), naming.DLQ_QUEUES
            self._parts.topics.make(topic, queues)
        else:
            topic, queues = retry, group.retry_queue_nums
            level = header.delay_level or _FIRST_LEVEL + found.reconsume_times
            pairs[DELAY] = str(level)
        message = message_of(found, topic, any_queue(queues), encode_pairs(pairs), found.sys_flag)
        message = msgspec.structs.replace(message, reconsume_times=found.reconsume_times + 1)
        try:
            await self._parts.store.put(message)
        except PutError as error:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, str(error)) from error

    def _retry_topic(self, header: SendBackHeader, group: SubscriptionGroup) -> str:
        name = naming.retry_topic(group.group_name)
        sys_flag = UNIT_SUBSCRIPTION if header.unit_mode else 0
        topic = self._parts.topics.make(name, group.retry_queue_nums, sys_flag=sys_flag)
        if not topic.perm & PERM_WRITE:
            reason = f"the topic[{name}] sending message is forbidden"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        return name

    @staticmethod
    def _is_dead(header: SendBackHeader, group: SubscriptionGroup, found: Record) -> bool:
        most = header.max_reconsume_times
        most = group.retry_max_times if most is None else most
        return header.delay_level < 0 or found.reconsume_times >= most
