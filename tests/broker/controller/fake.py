"""A controller in the event loop of a test: one group, no consensus, elections as asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mqlake.protocol.bodies.controller import SyncStateSet
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.controller import (
    AlterSyncStateSetHeader,
    ApplyBrokerIdHeader,
    ControllerHeartbeatHeader,
    ControllerMetadataResponseHeader,
    ElectMasterHeader,
    GetNextBrokerIdResponseHeader,
    MasterHeader,
    RegisterToControllerHeader,
)
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.limits import Limits
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer


class FakeController:
    """What RocketMQ's controller answers.

    Attributes:
        address: where it listens.
        addresses: of the brokers by id.
        master, number: the master's id, None without one, and its epoch.
        members, version: the in-sync set.
        heartbeats: the last one of each broker.
        refuses: answers no change of the in-sync set.
        is_terse: does not say the in-sync set when it answers an election.
    """

    def __init__(self) -> None:
        self.address = ""
        self.addresses: dict[int, str] = {}
        self._codes: dict[int, str] = {}
        self.master: int | None = None
        self.number, self.version = 0, 0
        self.members: set[int] = set()
        self.heartbeats: dict[int, ControllerHeartbeatHeader] = {}
        self.refuses = self.is_terse = False

    def routes(self) -> list[Route]:
        handlers = {
            RequestCode.CONTROLLER_GET_METADATA_INFO: self._metadata,
            RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: self._next_id,
            RequestCode.CONTROLLER_APPLY_BROKER_ID: self._apply,
            RequestCode.CONTROLLER_REGISTER_BROKER: self._register,
            RequestCode.CONTROLLER_GET_REPLICA_INFO: self._info,
            RequestCode.CONTROLLER_ELECT_MASTER: self._elect,
            RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: self._alter,
            RequestCode.BROKER_HEARTBEAT: self._heartbeat,
        }
        return [Route(code, handler, Permission.READ) for code, handler in handlers.items()]

    def elect(self, broker_id: int | None) -> None:
        """Make a broker the master; None: there is no master."""
        self.master = broker_id
        self.number += 1
        if broker_id is not None:
            self.members = {broker_id}
            self.version += 1

    def _metadata(self, _peer: Peer, request: Command) -> Command:
        header = ControllerMetadataResponseHeader(controller_leader_address=self.address)
        return response(request, header=header)

    def _next_id(self, _peer: Peer, request: Command) -> Command:
        header = GetNextBrokerIdResponseHeader(next_broker_id=len(self._codes) + 1)
        return response(request, header=header)

    def _apply(self, _peer: Peer, request: Command) -> Command:
        header = request.header(ApplyBrokerIdHeader)
        code = header.register_check_code
        if self._codes.setdefault(header.applied_broker_id, code) != code:
            raise RemotingError(ResponseCode.CONTROLLER_BROKER_ID_INVALID, "taken")
        return response(request)

    def _register(self, _peer: Peer, request: Command) -> Command:
        header = request.header(RegisterToControllerHeader)
        self.addresses[header.broker_id] = header.broker_address
        return self._term(request)

    def _info(self, _peer: Peer, request: Command) -> Command:
        return self._term(request)

    def _elect(self, _peer: Peer, request: Command) -> Command:
        header = request.header(ElectMasterHeader)
        if self.master is None and (not self.members or header.broker_id in self.members):
            self.elect(header.broker_id)
        if self.master is None:
            raise RemotingError(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, "nobody in sync")
        answer = self._term(request)
        if self.is_terse:
            answer.body = b""
        return answer

    def _alter(self, _peer: Peer, request: Command) -> Command:
        header = request.header(AlterSyncStateSetHeader)
        asked = decode_body(SyncStateSet, request.body)
        if self.refuses or header.master_epoch != self.number:
            raise RemotingError(ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH, "not now")
        if asked.sync_state_set_epoch != self.version:
            raise RemotingError(ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, "old")
        self.members, self.version = set(asked.sync_state_set or ()), self.version + 1
        return response(request, body=self._set())

    def _heartbeat(self, _peer: Peer, request: Command) -> Command:
        header = request.header(ControllerHeartbeatHeader)
        self.heartbeats[header.broker_id] = header
        return response(request)

    def _set(self) -> bytes:
        return encode_body(SyncStateSet(sorted(self.members), self.version))

    def _term(self, request: Command) -> Command:
        header = MasterHeader(
            master_broker_id=self.master,
            master_address=self.addresses.get(self.master) if self.master else None,
            master_epoch=self.number,
        )
        return response(request, header=header, body=self._set())


@asynccontextmanager
async def controller() -> AsyncIterator[FakeController]:
    """Run a controller."""
    fake = FakeController()
    server = RemotingServer(fake.routes(), Limits())
    fake.address = f"127.0.0.1:{await server.start('127.0.0.1', 0)}"
    try:
        yield fake
    finally:
        await server.stop()
