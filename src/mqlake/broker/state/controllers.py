"""Ask the controllers (upstream: the part of `BrokerOuterAPI` that does so)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from mqlake.broker.settings import BrokerSettings
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.controller import SyncStateSet
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Body, Command, request
from mqlake.protocol.errors import BodyError, RemotingError
from mqlake.protocol.header import Header
from mqlake.protocol.headers.controller import (
    AlterSyncStateSetHeader,
    ApplyBrokerIdHeader,
    ControllerHeartbeatHeader,
    ControllerMetadataResponseHeader,
    ElectMasterHeader,
    GetNextBrokerIdHeader,
    GetNextBrokerIdResponseHeader,
    GetReplicaInfoHeader,
    MasterHeader,
    RegisterToControllerHeader,
)
from mqlake.remoting.client import RemotingClient
from mqlake.replication.auto_switch.term import ChangeRefusedError, MasterTerm
from mqlake.storage.clock import Clock
from mqlake.store.live_settings import Current
from mqlake.tls.settings import client_tls

_SECONDS = 3.0
_MOST_MEMBERS = 1000

_REFUSALS = (
    ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH,
    ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH,
    ResponseCode.CONTROLLER_INVALID_MASTER,
    ResponseCode.CONTROLLER_INVALID_REPLICAS,
    ResponseCode.CONTROLLER_BROKER_NOT_ALIVE,
    ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST,
    ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
)
"""What a controller answers that changes nothing. After any other error, such as of its consensus,
it may have made the change, or make it later."""


class Controllers:
    """The controllers, of which one leads, and answers.

    All methods raise MqlakeError if it does not answer, refuses, or answers something else.

    Attributes:
        news: set when the controllers may have another term than they said last.
    """

    def __init__(self, settings: Current[BrokerSettings], clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        now = settings.now
        self._client = RemotingClient(tls=client_tls(now), credentials=now.inner_credentials)
        self.news = asyncio.Event()
        self._leader: str | None = None
        self._beating: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        """Close the connections."""
        for task in self._beating.values():
            task.cancel()
        await asyncio.gather(*self._beating.values(), return_exceptions=True)
        await self._client.close()

    async def find_leader(self) -> str:
        """Return the address of the leading controller, according to the first one that answers."""
        failures: list[str] = []
        for address in self._settings.now.controllers:
            try:
                asked = request(RequestCode.CONTROLLER_GET_METADATA_INFO)
                answer = await self._client.call(address, asked, _SECONDS)
                found = answer.header(ControllerMetadataResponseHeader).controller_leader_address
            except MqlakeError as error:
                failures.append(str(error))
                continue
            if found:
                self._leader = found
                return found
            failures.append(f"{address}: no controller leads")
        self._leader = None
        raise MqlakeError(f"no controller leads: {'; '.join(failures)}")

    async def next_broker_id(self) -> int:
        """Return the id that the next broker of this name gets."""
        now = self._settings.now
        header = GetNextBrokerIdHeader(
            cluster_name=now.broker_cluster_name, broker_name=now.broker_name
        )
        answer = await self._ask(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, header)
        return answer.header(GetNextBrokerIdResponseHeader).next_broker_id

    async def apply_for(self, broker_id: int, check_code: str) -> None:
        """Apply for a broker id."""
        now = self._settings.now
        header = ApplyBrokerIdHeader(
            cluster_name=now.broker_cluster_name,
            broker_name=now.broker_name,
            applied_broker_id=broker_id,
            register_check_code=check_code,
        )
        await self._ask(RequestCode.CONTROLLER_APPLY_BROKER_ID, header)

    async def register(self, broker_id: int) -> MasterTerm:
        """Say where this broker is."""
        now = self._settings.now
        header = RegisterToControllerHeader(
            cluster_name=now.broker_cluster_name,
            broker_name=now.broker_name,
            broker_id=broker_id,
            broker_address=now.broker_address,
            invoke_time=self._clock.milliseconds(),
        )
        return _term(await self._ask(RequestCode.CONTROLLER_REGISTER_BROKER, header))

    async def elect(self, broker_id: int) -> MasterTerm:
        """Have a master elected if the group has no master."""
        now = self._settings.now
        header = ElectMasterHeader(
            cluster_name=now.broker_cluster_name,
            broker_name=now.broker_name,
            broker_id=broker_id,
            invoke_time=self._clock.milliseconds(),
        )
        exists = ResponseCode.CONTROLLER_MASTER_STILL_EXIST
        return _term(await self._ask(RequestCode.CONTROLLER_ELECT_MASTER, header, also=exists))

    async def term(self) -> MasterTerm:
        """Return who the master is."""
        header = GetReplicaInfoHeader(broker_name=self._settings.now.broker_name)
        return _term(await self._ask(RequestCode.CONTROLLER_GET_REPLICA_INFO, header))

    async def alter(self, term: MasterTerm, members: Iterable[int], version: int) -> MasterTerm:
        """Ask for another in-sync set, as the master of a term; return what holds then.

        Raises:
            ChangeRefusedError: the change is refused for good.
        """
        try:
            return await self._ask_to_alter(term, members, version)
        except RemotingError as error:
            self.news.set()
            if error.code not in _REFUSALS:
                raise
            is_of_dead = error.code == ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
            raise ChangeRefusedError(str(error), await self.term(), is_of_dead=is_of_dead) from None

    async def _ask_to_alter(
        self, term: MasterTerm, members: Iterable[int], version: int
    ) -> MasterTerm:
        header = AlterSyncStateSetHeader(
            broker_name=self._settings.now.broker_name,
            master_broker_id=term.master_id or 0,
            master_epoch=term.number,
            invoke_time=self._clock.milliseconds(),
        )
        body = encode_body(SyncStateSet(sorted(members), version))
        answer = await self._ask(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body)
        found = decode_body(SyncStateSet, answer.body)
        return term._replace(members=_members(found), version=found.sync_state_set_epoch)

    def beat(self, header: ControllerHeartbeatHeader) -> None:
        """Send a heartbeat to every controller; one that does not answer delays no other."""
        for address in self._settings.now.controllers:
            before = self._beating.get(address)
            if before is None or before.done():
                self._beating[address] = asyncio.create_task(self._beat(address, header))

    async def _beat(self, address: str, header: ControllerHeartbeatHeader) -> None:
        with suppress(MqlakeError):  # the leader is asked often, and reports itself
            await self._client.oneway(address, request(RequestCode.BROKER_HEARTBEAT, header))

    async def _ask(
        self,
        code: RequestCode,
        header: Header,
        body: Body = b"",
        also: ResponseCode = ResponseCode.SUCCESS,
    ) -> Command:
        """Return the leader's answer. After a failure, the next call asks who leads.

        Args:
            also: a code that is as good as SUCCESS.
        """
        leader = self._leader or await self.find_leader()
        try:
            answer = await self._client.request(leader, request(code, header, body), _SECONDS)
        except MqlakeError:
            self._leader = None
            raise
        if answer.code in (ResponseCode.SUCCESS, also):
            return answer
        if answer.code == ResponseCode.CONTROLLER_NOT_LEADER:
            self._leader = None
        raise RemotingError(answer.code, answer.remark or f"{leader}: code {answer.code}")


def _term(answer: Command) -> MasterTerm:
    header = answer.header(MasterHeader)
    found = decode_body(SyncStateSet, answer.body) if answer.body else SyncStateSet()
    return MasterTerm(
        header.master_epoch or 0,
        header.master_broker_id if header.master_address else None,
        header.master_address or "",
        _members(found),
        header.sync_state_set_epoch or found.sync_state_set_epoch,
    )


def _members(found: SyncStateSet) -> frozenset[int]:
    members = found.sync_state_set or []
    if len(members) > _MOST_MEMBERS:
        raise BodyError(f"the in-sync set has {len(members)} brokers")
    return frozenset(members)
