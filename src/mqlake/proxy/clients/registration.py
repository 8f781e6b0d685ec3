"""Clients come: they send their settings, and heartbeats; and go (upstream: `ClientActivity`)."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    ClientType,
    Code,
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    Settings,
)
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request as command
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.clients.client import GrpcClient
from mqlake.proxy.clients.settings_merge import (
    LARGEST,
    consumer_heartbeat,
    for_consumer,
    for_producer,
    producer_heartbeat,
)
from mqlake.proxy.errors import OK, StatusError
from mqlake.proxy.names import group_of
from mqlake.proxy.sending.send import check_may_send
from mqlake.proxy.served import ServedMethod
from mqlake.proxy.state import ProxyState


class ClientRegistration:
    """Makes clients known to the service and to brokers."""

    def __init__(self, state: ProxyState) -> None:
        self._state, self._brokers, self._clients = state, state.brokers, state.clients

    def calls(self) -> Sequence[ServedMethod]:
        """Return the handler of each method."""
        return (
            ServedMethod("Heartbeat", self._heartbeat),
            ServedMethod("NotifyClientTermination", self._terminated),
        )

    async def register(self, caller: Caller, settings: Settings) -> GrpcClient:
        """Note the settings of a client; return the client with those that it is to be answered.

        Raises:
            StatusError: they are illegal, too large, or there are too many clients.
            RemotingError: the broker refuses the client.
        """
        size = settings.ByteSize()
        if size > LARGEST:
            reason = f"the settings have {size} bytes; the maximum is {LARGEST}"
            raise StatusError(Code.BAD_REQUEST, reason)
        with self._clients.registering(caller):
            return await self._register(caller, settings)

    async def _register(self, caller: Caller, settings: Settings) -> GrpcClient:
        merged, heartbeat = await self._merged(caller, settings)
        self._clients.check_room(caller, settings.ByteSize())
        old = self._clients.get(caller.client_id)
        if old is not None and not _groups(old.heartbeat) <= _groups(heartbeat):
            self._brokers.unregister(old.caller, old.heartbeat)  # It has left some of them.
        await self._brokers.register(caller, heartbeat)
        return self._clients.put(caller, merged, heartbeat)

    async def _merged(self, caller: Caller, settings: Settings) -> tuple[Settings, Heartbeat]:
        own, most = self._state.settings, self._state.settings.max_topics_per_client
        if settings.WhichOneof("pub_sub") == "publishing":
            heartbeat = producer_heartbeat(caller.client_id, settings, most)
            self._check_publishing(caller, heartbeat)
            merged = for_producer(settings, own)
            merged.client_type = ClientType.PRODUCER
            return merged, heartbeat
        heartbeat = consumer_heartbeat(caller.client_id, settings, most, self._state.now())
        name = heartbeat.consumer_data_set[0].group_name
        return for_consumer(settings, own, await self._brokers.group(name, caller)), heartbeat

    def _check_publishing(self, caller: Caller, heartbeat: Heartbeat) -> None:
        """Refuse a producer of topics to which it may not send: it would be asked about the
        transactions of others.
        """
        for group in heartbeat.producer_data_set:
            check_may_send(self._brokers, group.group_name, caller)

    async def _heartbeat(
        self, _call: Call, caller: Caller, request: HeartbeatRequest
    ) -> HeartbeatResponse:
        client = self._clients.known(caller.client_id)
        self._clients.check_user(caller, client)
        if client.is_consumer and group_of(request.group) != client.group:
            reason = f"the client is a member of the group {client.group}"
            raise StatusError(Code.ILLEGAL_CONSUMER_GROUP, reason)
        await self._brokers.register(caller, client.heartbeat)
        self._clients.note_alive(client)
        return HeartbeatResponse(status=OK.status)

    async def _terminated(
        self, _call: Call, caller: Caller, _request: NotifyClientTerminationRequest
    ) -> NotifyClientTerminationResponse:
        client = self._clients.known(caller.client_id)
        self._clients.check_user(caller, client)
        if self._brokers.is_authenticating and client.group:
            fields = {"clientID": client.client_id, "consumerGroup": client.group}
            self._brokers.check(command(RequestCode.UNREGISTER_CLIENT, fields), caller)
        self._clients.end(client.client_id)
        return NotifyClientTerminationResponse(status=OK.status)


def _groups(heartbeat: Heartbeat) -> set[tuple[str, str]]:
    """Return the groups of a client, those of producers apart from those of consumers."""
    producers = {("producer", each.group_name) for each in heartbeat.producer_data_set}
    return producers | {("consumer", each.group_name) for each in heartbeat.consumer_data_set}
