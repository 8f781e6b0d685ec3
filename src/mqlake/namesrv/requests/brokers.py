"""Requests of brokers (register, heartbeat, unregister), and requests about brokers."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from mqlake.formats.config import DataVersion
from mqlake.namesrv.broker_table import BrokerKey, Place
from mqlake.namesrv.kv_config import ORDERED_TOPICS
from mqlake.namesrv.routes import RegistrationContent
from mqlake.namesrv.state import NameServerState
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs, decode_register, has_crc
from mqlake.protocol.bodies.route import (
    BrokerMemberGroup,
    BrokerMemberGroupBody,
    ClusterInfo,
    KVTable,
)
from mqlake.protocol.body import decode_body, encode_body, encode_unquoted
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import (
    AddWritePermResponseHeader,
    BrokerHeartbeatHeader,
    BrokerNameHeader,
    GetBrokerMemberGroupHeader,
    QueryDataVersionHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerHeader,
    RegisterBrokerResponseHeader,
    UnregisterBrokerHeader,
    WipeWritePermResponseHeader,
)
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job, empty

Later = Answer | Coroutine[Any, Any, Answer]
"""An answer, which is returned at once if it is short."""

_ZONE = "__ZONE_NAME"
_ZLIB = b"x"
"""The first byte of zlib streams, which JSON never has."""
_V3_0_11 = 37
"""The version from which the body of REGISTER_BROKER contains more than topics."""


class BrokerRequests:
    """Serves brokers, and requests about them."""

    def __init__(self, state: NameServerState) -> None:
        self._state = state
        self._routes = state.routes
        self._connections: set[Peer] = set()

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.REGISTER_BROKER, self._register, Permission.UPDATE),
            Route(RequestCode.UNREGISTER_BROKER, self._unregister, Permission.UPDATE),
            Route(RequestCode.BROKER_HEARTBEAT, self._heartbeat, Permission.UPDATE),
            Route(RequestCode.QUERY_DATA_VERSION, self._query_data_version, Permission.READ),
            Route(RequestCode.GET_BROKER_CLUSTER_INFO, self._cluster_info, Permission.READ),
            Route(RequestCode.GET_BROKER_MEMBER_GROUP, self._member_group, Permission.READ),
            Route(RequestCode.WIPE_WRITE_PERM_OF_BROKER, self._wipe_write, Permission.UPDATE),
            Route(RequestCode.ADD_WRITE_PERM_OF_BROKER, self._add_write, Permission.UPDATE),
        )

    def _register(self, peer: Peer, request: Command) -> Later:
        job = self._take(peer, request)
        return self._state.slices.serve(peer, job, size=len(request.body), is_kept=True)

    def _take(self, peer: Peer, request: Command) -> Job[Command]:
        header = request.header(RegisterBrokerHeader)
        crc = header.body_crc32
        if crc and not (yield from has_crc(request.body, crc)):
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "crc32 not match")
        key = BrokerKey(header.cluster_name, header.broker_addr)
        registered = yield from _body(request, compressed=header.compressed)
        new = RegistrationContent(
            place=Place(key, header.broker_name, header.broker_id),
            ha_address=header.ha_server_addr,
            zone=request.fields.get(_ZONE),
            timeout=header.heartbeat_timeout_millis,
            acting_master=header.enable_acting_master,
            body=registered,
            connection=peer,
            part=header.registration_part,
        )
        state = self._state
        now = state.clock.milliseconds()
        topics = registered.topic_config_serialize_wrapper
        try:
            master = yield from self._routes.register(new, state.settings, now)
        except RemotingError:
            yield from empty(topics.topic_config_table)
            raise
        yield from empty(topics.topic_config_table)
        if master is None:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "register broker failed")
        self._watch(peer)
        body = b""
        if state.settings.return_order_topic_config_to_broker:
            ordered = state.kv.namespace(ORDERED_TOPICS)
            body = b"" if ordered is None else encode_body(KVTable(ordered))
        found = RegisterBrokerResponseHeader(
            ha_server_addr=master.ha_address or None, master_addr=master.address or None
        )
        return response(request, header=found, body=body)

    def _watch(self, peer: Peer) -> None:
        """Remove a broker as soon as its connection is closed."""
        if peer not in self._connections:
            self._connections.add(peer)
            peer.on_close(self._lost)

    def _lost(self, peer: Peer) -> None:
        self._connections.discard(peer)
        self._state.slices.start(self._routes.lose(peer))

    def _unregister(self, peer: Peer, request: Command) -> Later:
        return self._state.slices.serve(peer, self._forget(request), is_kept=True)

    def _forget(self, request: Command) -> Job[Command]:
        header = request.header(UnregisterBrokerHeader)
        key = BrokerKey(header.cluster_name, header.broker_addr)
        yield from self._routes.unregister(Place(key, header.broker_name, header.broker_id))
        return response(request)

    def _heartbeat(self, _: Peer, request: Command) -> Command:
        header = request.header(BrokerHeartbeatHeader)
        self._heard(header.cluster_name, header.broker_addr)
        return response(request)

    def _query_data_version(self, _: Peer, request: Command) -> Command:
        header = request.header(QueryDataVersionHeader)
        version = decode_body(DataVersion, request.body)
        key = BrokerKey(header.cluster_name, header.broker_addr)
        changed = self._routes.has_changed(key, version)
        self._heard(*key)
        live = self._routes.brokers.live.get(key)
        body = b"" if live is None else encode_body(live.data_version)
        return response(request, header=QueryDataVersionResponseHeader(changed=changed), body=body)

    def _heard(self, cluster: str, address: str) -> None:
        self._routes.brokers.heard(BrokerKey(cluster, address), self._state.clock.milliseconds())

    def _cluster_info(self, peer: Peer, request: Command) -> Later:
        return self._state.slices.serve(peer, self._clusters(request))

    def _clusters(self, request: Command) -> Job[Command]:
        yield
        brokers = self._routes.brokers
        clusters = {cluster: sorted(names) for cluster, names in brokers.clusters.items()}
        return response(request, body=encode_unquoted(ClusterInfo(brokers.by_name, clusters)))

    def _member_group(self, _: Peer, request: Command) -> Command:
        header = request.header(GetBrokerMemberGroupHeader)
        data = self._routes.brokers.by_name.get(header.broker_name)
        group = BrokerMemberGroup(
            header.cluster_name, header.broker_name, data.broker_addrs if data else {}
        )
        return response(request, body=encode_unquoted(BrokerMemberGroupBody(group)))

    def _wipe_write(self, peer: Peer, request: Command) -> Later:
        return self._state.slices.serve(peer, self._wipe(request), is_kept=True)

    def _wipe(self, request: Command) -> Job[Command]:
        name = request.header(BrokerNameHeader).broker_name
        count = yield from self._routes.topics.wipe_write(name)
        return response(request, header=WipeWritePermResponseHeader(wipe_topic_count=count))

    def _add_write(self, peer: Peer, request: Command) -> Later:
        return self._state.slices.serve(peer, self._add(request), is_kept=True)

    def _add(self, request: Command) -> Job[Command]:
        name = request.header(BrokerNameHeader).broker_name
        count = yield from self._routes.topics.add_write(name)
        return response(request, header=AddWritePermResponseHeader(add_topic_count=count))


def _body(request: Command, *, compressed: bool) -> Job[RegisterBody]:
    if request.version >= _V3_0_11:
        # Releases 5.x with compressedRegister compress the body without saying so.
        is_zlib = request.body[:1] == _ZLIB
        return (yield from decode_register(request.body, compressed=compressed or is_zlib))
    if not request.body:
        return RegisterBody()
    return RegisterBody(decode_body(TopicConfigs, request.body))
