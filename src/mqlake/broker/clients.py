"""HEART_BEAT, UNREGISTER_CLIENT, GET_CONSUMER_LIST_BY_GROUP, CHECK_CLIENT_CONFIG.

Upstream: `ClientManageProcessor`, `ConsumerManageProcessor`.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from mqlake.broker.filter.sql92.tokens import ExpressionError
from mqlake.broker.filter.subscriptions import choice, not_supported
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.clients.members import Client
from mqlake.broker.state.topics import READ_WRITE, UNIT_SUBSCRIPTION
from mqlake.protocol import naming
from mqlake.protocol.bodies.heartbeat import (
    ACTIVE,
    CheckClient,
    ConsumerData,
    ConsumerIds,
    Heartbeat,
)
from mqlake.protocol.body import encode_body, request_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.clients import ConsumerGroupHeader, UnregisterClientHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job

_LONGEST_ID = 1024
_LONGEST_GROUP = 255
"""Maximum characters of a producer group's name, as RocketMQ's clients check it."""
_CLIENTS = Permission.PUBLISH | Permission.SUBSCRIBE
_READERS = Permission.SUBSCRIBE | Permission.READ

_log = logging.getLogger(__name__)


class ClientRequests:
    """Serves what clients tell a broker about themselves."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.HEART_BEAT, self._heartbeat, _CLIENTS),
            Route(RequestCode.UNREGISTER_CLIENT, self._unregister, _CLIENTS),
            Route(RequestCode.GET_CONSUMER_LIST_BY_GROUP, self._consumer_ids, _READERS),
            Route(RequestCode.CHECK_CLIENT_CONFIG, self._check_client, _CLIENTS),
        )

    def _heartbeat(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        return self._runtime.slices.serve(
            peer, self._take_heartbeat(peer, request), size=len(request.body)
        )

    def _take_heartbeat(self, peer: Peer, request: Command) -> Job[Command]:
        settings = self._runtime.settings
        data = request_body(Heartbeat, request, settings.max_heartbeat_size, "maxHeartbeatSize")
        _check(data, settings.max_groups_per_heartbeat)
        clients, user = self._state.clients, self._state.access.signer(request)
        client = clients.client(peer, data.client_id, request.language, request.version, user)
        is_changed = False
        for consumer in data.consumer_data_set:
            if self._takes(consumer, peer):
                is_changed |= self._is_changed(consumer.group_name, data)
                self._add_consumer(consumer, client, data)
            yield
        for producer in data.producer_data_set:
            clients.add_producer(producer.group_name, client)
            yield
        fields = {
            "IS_SUPPORT_HEART_BEAT_V2": "true",
            "IS_SUB_CHANGE": "true" if is_changed or not data.heartbeat_fingerprint else "false",
        }
        return response(request, header=fields)

    def _takes(self, consumer: ConsumerData, peer: Peer) -> bool:
        if self._runtime.settings.reject_pull_consumer_enable and consumer.consume_type == ACTIVE:
            return False
        name = consumer.group_name
        if self._state.groups.get_or_make(name, peer.address) is None:
            _log.warning("a heartbeat of group %r is ignored: the group does not exist", name)
            return False
        return True

    def _is_changed(self, name: str, data: Heartbeat) -> bool:
        """Return whether the client must send its subscriptions again.

        Upstream asks for them if the fingerprint differs. An unknown fingerprint also differs if
        the heartbeat contains no subscriptions: those of a client from before a restart.
        """
        group = self._state.clients.consumers.get(name)
        if group is None:
            return data.without_sub
        return group.fingerprint != data.heartbeat_fingerprint

    def _add_consumer(self, consumer: ConsumerData, client: Client, data: Heartbeat) -> None:
        name, topics = consumer.group_name, self._state.topics
        group = self._state.groups.get(name)
        wanted = (topics.get(one.topic) for one in consumer.subscription_data_set)
        retry = naming.retry_topic(name)
        if not topics.is_being_deleted(retry):  # Otherwise the next heartbeat creates it.
            topics.make(
                retry,
                group.retry_queue_nums if group else 1,
                READ_WRITE,
                UNIT_SUBSCRIPTION if consumer.unit_mode else 0,
                order=any(topic.order for topic in wanted if topic),
            )
        fingerprint = data.heartbeat_fingerprint
        self._state.clients.add_consumer(
            consumer, client, keep=data.without_sub, fingerprint=fingerprint
        )

    def _unregister(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        # It is processed like heartbeats, so that it does not overtake one of the same connection.
        return self._runtime.slices.serve(peer, self._leave(peer, request), is_kept=True)

    def _leave(self, peer: Peer, request: Command) -> Job[Command]:
        header = request.header(UnregisterClientHeader)
        if header.producer_group is not None:
            self._state.clients.remove_producer(header.producer_group, peer)
        yield
        if header.consumer_group is not None:
            self._state.clients.remove_consumer(header.consumer_group, peer)
        return response(request)

    def _consumer_ids(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        name = request.header(ConsumerGroupHeader).consumer_group
        group = self._state.clients.consumers.get(name)
        if group is None:
            reason = f"no consumer for this group, {name}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return response(request, body=encode_body(ConsumerIds(group.client_ids)))

    def _check_client(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        if not request.body:
            return response(request)
        most = self._runtime.settings.max_heartbeat_size
        wanted = request_body(CheckClient, request, most, "maxHeartbeatSize").subscription_data
        if wanted is None:
            return response(request)
        reason = not_supported(self._runtime.settings, wanted.expression_type)
        if reason is not None:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        try:
            choice(self._runtime.settings, wanted.sub_string, wanted.expression_type)
        except ExpressionError as error:
            raise RemotingError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from None
        return response(request)


def _check(data: Heartbeat, most: int) -> None:
    """Refuse a heartbeat that is too large.

    Raises:
        RemotingError: it has too many groups, or names that are too long.
    """
    count = len(data.consumer_data_set) + len(data.producer_data_set)
    if count > most:
        reason = (
            f"the heartbeat names {count} groups; the maximum is {most} (maxGroupsPerHeartbeat)"
        )
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
    if len(data.client_id) > _LONGEST_ID:
        reason = f"the clientID has {len(data.client_id)} characters; the maximum is {_LONGEST_ID}"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
    for producer in data.producer_data_set:
        if len(producer.group_name) > _LONGEST_GROUP:
            reason = f"the name of a producer group exceeds {_LONGEST_GROUP} characters"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
