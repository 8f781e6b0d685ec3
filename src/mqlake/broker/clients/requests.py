"""HEART_BEAT, UNREGISTER_CLIENT, GET_CONSUMER_LIST_BY_GROUP, CHECK_CLIENT_CONFIG.

Upstream: `ClientManageProcessor`, `ConsumerManageProcessor`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from mqlake.broker import naming
from mqlake.broker.clients.members import Client
from mqlake.broker.filter.sql92.tokens import ExpressionError
from mqlake.broker.filter.subscriptions import choice, not_supported
from mqlake.broker.parts import Parts
from mqlake.broker.topics import READ_WRITE, UNIT_SUBSCRIPTION
from mqlake.remoting.bodies.heartbeat import (
    ACTIVE,
    CheckClient,
    ConsumerData,
    ConsumerIds,
    Heartbeat,
)
from mqlake.remoting.body import decode_body, encode_body
from mqlake.remoting.codes import RequestCode, ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import RemotingError
from mqlake.remoting.headers.clients import ConsumerGroupHeader, UnregisterClientHeader
from mqlake.remoting.server import Handler

_log = logging.getLogger(__name__)


class ClientRequests:
    """What clients tell a broker about themselves."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def handlers(self) -> Mapping[int, Handler]:
        """Return what answers each request code."""
        return {
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._consumer_ids,
            RequestCode.CHECK_CLIENT_CONFIG: self._check_client,
        }

    def _heartbeat(self, peer: Peer, request: Command) -> Command:
        data = decode_body(Heartbeat, request.body)
        clients = self._parts.clients
        client = clients.client(peer, data.client_id, request.language, request.version)
        is_changed = False
        for consumer in data.consumer_data_set:
            if not self._takes(consumer):
                continue
            is_changed |= self._is_changed(consumer.group_name, data)
            self._add_consumer(consumer, client, data)
        for producer in data.producer_data_set:
            clients.add_producer(producer.group_name, client)
        fields = {
            "IS_SUPPORT_HEART_BEAT_V2": "true",
            "IS_SUB_CHANGE": "true" if is_changed or not data.heartbeat_fingerprint else "false",
        }
        return response(request, header=fields)

    def _takes(self, consumer: ConsumerData) -> bool:
        if self._parts.settings.reject_pull_consumer_enable and consumer.consume_type == ACTIVE:
            return False
        if self._parts.groups.get_or_make(consumer.group_name) is None:
            _log.warning("no heartbeat of group %r is taken: no such group", consumer.group_name)
            return False
        return True

    def _is_changed(self, name: str, data: Heartbeat) -> bool:
        """Say whether the client is to tell its subscriptions anew.

        Upstream asks when the fingerprint is another one. One that it does not know is another
        one too, if the subscriptions are left out: those of a client that was here before a
        restart.
        """
        group = self._parts.clients.consumers.get(name)
        if group is None:
            return data.without_sub
        return group.fingerprint != data.heartbeat_fingerprint

    def _add_consumer(self, consumer: ConsumerData, client: Client, data: Heartbeat) -> None:
        name, topics = consumer.group_name, self._parts.topics
        group = self._parts.groups.get(name)
        wanted = (topics.get(one.topic) for one in consumer.subscription_data_set)
        topics.make(
            naming.retry_topic(name),
            group.retry_queue_nums if group else 1,
            READ_WRITE,
            UNIT_SUBSCRIPTION if consumer.unit_mode else 0,
            order=any(topic.order for topic in wanted if topic),
        )
        self._parts.clients.add_consumer(consumer, client, keep=data.without_sub)
        self._parts.clients.consumers[name].fingerprint = data.heartbeat_fingerprint

    def _unregister(self, peer: Peer, request: Command) -> Command:
        header = request.header(UnregisterClientHeader)
        if header.producer_group is not None:
            self._parts.clients.remove_producer(header.producer_group, peer)
        if header.consumer_group is not None:
            self._parts.clients.remove_consumer(header.consumer_group, peer)
        return response(request)

    def _consumer_ids(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        name = request.header(ConsumerGroupHeader).consumer_group
        group = self._parts.clients.consumers.get(name)
        if group is None:
            reason = f"no consumer for this group, {name}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return response(request, body=encode_body(ConsumerIds(group.client_ids)))

    def _check_client(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        if not request.body:
            return response(request)
        wanted = decode_body(CheckClient, request.body).subscription_data
        if wanted is None:
            return response(request)
        reason = not_supported(self._parts.settings, wanted.expression_type)
        if reason is not None:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        try:
            choice(wanted.sub_string, wanted.expression_type)
        except ExpressionError as error:
            raise RemotingError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from None
        return response(request)
