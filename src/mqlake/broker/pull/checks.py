"""The checks of a pull before the queue is read, in upstream's order.

Upstream: `PullMessageProcessor.processRequest`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, NamedTuple

from mqlake.broker.filter.sql92.tokens import ExpressionError
from mqlake.broker.filter.subscriptions import Choice, choice, is_costly, not_supported
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ, Topic
from mqlake.protocol.bodies.heartbeat import ACTIVE
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, PullHeader
from mqlake.protocol.naming import SYSTEM_GROUP_PREFIX, SYSTEM_GROUPS
from mqlake.remoting.connection import Peer
from mqlake.remoting.slices import Job

_UNREGISTERED = {*SYSTEM_GROUPS, "DEFAULT_CONSUMER", "SCHEDULE_CONSUMER", "__MONITOR_CONSUMER"}
"""Groups that pull without heartbeats. Upstream: `MixAll.isSysConsumerGroupPullMessage`."""


class Allowed(NamedTuple):
    """A pull that may be served: its topic, its group, and which messages it chooses."""

    topic: Topic
    group: SubscriptionGroup
    choice: Choice


class PullChecks:
    """Decides which pulls a broker serves."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def check(self, request: Command, header: PullHeader, peer: Peer) -> Allowed:
        """Return a pull's topic, group and choice of messages.

        Raises:
            RemotingError: the answer to a pull that is not served.
        """
        settings = self._runtime.settings
        if not settings.broker_permission & PERM_READ:
            raise _forbidden(f"the broker[{settings.broker_ip1}] pulling message is forbidden")
        is_lite = request.code == RequestCode.LITE_PULL_MESSAGE
        if is_lite and not settings.lite_pull_message_enable:
            raise _forbidden(
                f"the broker[{settings.broker_ip1}] for lite pull consumer is forbidden"
            )
        group = self._group(header.consumer_group, peer)
        topic = self._topic(header, peer.address)
        wanted = self._choice(header, group)
        if settings.reject_pull_consumer_enable:
            self._check_member(header.consumer_group, peer)
        return Allowed(topic, group, wanted)

    def prepare(
        self, request: Command, header: PullHeader, peer: Peer
    ) -> Coroutine[Any, Any, None] | None:
        """Make the check of a pull fast by parsing a long expression, in slices.

        None if there is nothing more to parse.

        Raises:
            RemotingError: the answer to a pull that is not served.
        """
        if not self.is_costly(header):
            return None
        job = self._parse(request, header, peer)
        return self._runtime.slices.serve(peer, job, size=len(request.body))

    def _parse(self, request: Command, header: PullHeader, peer: Peer) -> Job[None]:
        self.check(request, header, peer)
        yield

    def is_costly(self, header: PullHeader) -> bool:
        """Return whether checking a pull takes long, because its expression must be parsed."""
        if header.sys_flag & HAS_SUBSCRIPTION:
            return is_costly(header.subscription, header.expression_type)
        consumers = self._state.clients.consumers.get(header.consumer_group)
        found = consumers.subscriptions.get(header.topic) if consumers else None
        return found is not None and is_costly(found.sub_string, found.expression_type)

    def _group(self, name: str, peer: Peer) -> SubscriptionGroup:
        group = self._state.groups.get_or_make(name, peer.address)
        if group is None:
            reason = f"subscription group [{name}] does not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        if not group.consume_enable:
            raise _forbidden(f"subscription group no permission, {name}")
        return group

    def _topic(self, header: PullHeader, address: str) -> Topic:
        name = header.topic
        topic = self._state.topics.get(name)
        if topic is None:
            reason = f"topic[{name}] not exist, apply first please!"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        if not topic.perm & PERM_READ:
            raise _forbidden(f"the topic[{name}] pulling message is forbidden")
        if not 0 <= header.queue_id < topic.read_queue_nums:
            reason = (
                f"queueId[{header.queue_id}] is illegal, topic:[{name}]"
                f" topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[{address}]"
            )
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        return topic

    def _choice(self, header: PullHeader, group: SubscriptionGroup) -> Choice:
        if header.sys_flag & HAS_SUBSCRIPTION:
            expression, kind = header.subscription, header.expression_type
            refused = ResponseCode.SUBSCRIPTION_PARSE_FAILED
        else:
            expression, kind = self._subscription(header, group)
            refused = ResponseCode.FILTER_DATA_NOT_EXIST
        if (reason := not_supported(self._runtime.settings, kind)) is not None:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        try:
            return choice(self._runtime.settings, expression, kind)
        except ExpressionError as error:
            reason = f"parse the consumer's subscription failed: {error}"
            raise RemotingError(refused, reason) from None

    def _subscription(
        self, header: PullHeader, group: SubscriptionGroup
    ) -> tuple[str | None, str | None]:
        """Return the expression, and its type, from the group's heartbeats."""
        name, topic = header.consumer_group, header.topic
        consumers = self._state.clients.consumers.get(name)
        if consumers is None:
            reason = "the consumer's group info not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_NOT_EXIST, reason)
        if consumers.is_broadcasting and not group.consume_broadcast_enable:
            raise _forbidden(f"the consumer group[{name}] can not consume by broadcast way")
        if self._state.groups.forbidden(name, topic) & PERM_READ:
            raise _forbidden(f"the consumer group[{name}] is forbidden for topic[{topic}]")
        found = consumers.subscriptions.get(topic)
        if found is None:
            reason = "the consumer's subscription not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_NOT_EXIST, reason)
        if found.sub_version < header.sub_version:
            reason = "the consumer's subscription not latest"
            raise RemotingError(ResponseCode.SUBSCRIPTION_NOT_LATEST, reason)
        return (
            (None, None) if found.class_filter_mode else (found.sub_string, found.expression_type)
        )

    def _check_member(self, name: str, peer: Peer) -> None:
        """Refuse a pull of a group that no heartbeat has joined, except for groups of tools."""
        consumers = self._state.clients.consumers.get(name)
        if consumers is not None and (consumers.consume_type != ACTIVE or peer in consumers):
            return
        if name in _UNREGISTERED or name.startswith(SYSTEM_GROUP_PREFIX):
            return
        reason = "the consumer's group info not exist, or the pull consumer is rejected by server."
        raise RemotingError(ResponseCode.SUBSCRIPTION_NOT_EXIST, reason)


def _forbidden(reason: str) -> RemotingError:
    return RemotingError(ResponseCode.NO_PERMISSION, reason)
