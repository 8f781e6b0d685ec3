"""The checks of a send before it is put, in upstream's order.

Upstream: `SendMessageProcessor.preSend`, `AbstractSendMessageProcessor.msgCheck`.
"""

from __future__ import annotations

import logging
from datetime import datetime

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.topics import UNIT, UNIT_SUBSCRIPTION
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_WRITE, Topic
from mqlake.protocol import naming
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2
from mqlake.remoting.connection import Peer

MULTI_TAG = "MULTI_TAG"
"""Filter type of topics whose messages may have several tags."""

Header = SendMessageHeader | SendMessageHeaderV2

_POP_SEPARATOR = "+"

_log = logging.getLogger(__name__)


def retry_group(state: BrokerState, topic: str, peer: Peer) -> SubscriptionGroup:
    """Return the group of a retry topic; if it does not exist, create it if consumers may.

    Raises:
        RemotingError: the group does not exist, or there are too many groups.
    """
    name = group_of_retry_topic(topic)
    group = state.groups.get_or_make(name, peer.address)
    if group is None:
        reason = f"subscription group not exist, {name}"
        raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
    return group


def group_of_retry_topic(topic: str) -> str:
    """Return the name of the group to which a retry topic belongs."""
    name = topic.removeprefix(naming.RETRY_PREFIX)
    group, separator, of_topic = name.partition(_POP_SEPARATOR)
    return group if separator and of_topic else name


class SendChecks:
    """Decides which sends a broker accepts."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._topic = state.topics.get
        self._read_start()
        runtime.live.on_change(self._read_start, "start_accept_send_request_time_stamp")

    def _read_start(self) -> None:
        state, runtime = self._state, self._runtime
        self._starts_at = runtime.settings.start_accept_send_request_time_stamp
        if state.store.clock.milliseconds() < self._starts_at:
            _log.warning("no message is accepted before %s", self._start_time())

    def topic(self, header: Header, peer: Peer) -> Topic:
        """Return the topic of a send; if it does not exist, create it if producers may.

        Raises:
            RemotingError: the answer to a send that is refused.
        """
        if self._starts_at:
            self._check_start()
        name = header.topic
        if not naming.is_for_clients(name):
            reason = f"Sending message to topic[{name}] is forbidden."
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        topic = self._topic(name) or self._make(header, peer)
        if topic.order:
            self._check_permission()
        queue_id = header.queue_id
        if queue_id >= topic.write_queue_nums and queue_id >= topic.read_queue_nums:
            reason = f"request queueId[{queue_id}] is illegal, {topic} Producer: {peer.address}"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        return topic

    def _check_permission(self) -> None:
        settings = self._runtime.settings
        if not settings.broker_permission & PERM_WRITE:
            reason = f"the broker[{settings.broker_ip1}] sending message is forbidden"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)

    def _check_start(self) -> None:
        if self._state.store.clock.milliseconds() < self._starts_at:
            reason = f"broker unable to service, until {self._start_time()}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        self._starts_at = 0

    def _start_time(self) -> str:
        """Return when sends are accepted, in local time (`startAcceptSendRequestTimeStamp`)."""
        when = datetime.fromtimestamp(self._starts_at / 1000).astimezone()
        return f"{when.isoformat(' ', 'milliseconds')} (startAcceptSendRequestTimeStamp)"

    def _make(self, header: Header, peer: Peer) -> Topic:
        name, topics = header.topic, self._state.topics
        if (fault := naming.topic_fault(name)) is not None:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, fault)
        is_retry = name.startswith(naming.RETRY_PREFIX)
        if is_retry:  # First: no topic remains of a group that is refused.
            retry_group(self._state, name, peer)
        sys_flag = 0
        if header.unit_mode:
            sys_flag = UNIT_SUBSCRIPTION if is_retry else UNIT
        queues = header.default_topic_queue_nums
        made = topics.make_for_send(name, header.default_topic, queues, sys_flag, peer.address)
        if made is None and is_retry:
            topics.check_room(name, peer.address)
            made = topics.make(name, 1, sys_flag=sys_flag, client=peer.address)
        if made is None:
            reason = f"topic[{name}] not exist, apply first please!"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        return made
