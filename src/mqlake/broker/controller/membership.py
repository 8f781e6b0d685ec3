"""Keep this broker registered with the controller, in the role that the controller gives it.

Upstream: `ReplicasManager`.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import msgspec

from mqlake.broker.controller.identity import Identity
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.controller import ControllerHeartbeatHeader, ExchangeHaInfoHeader
from mqlake.remoting.client import RemotingClient
from mqlake.replication.auto_switch.server import AutoSwitchServer
from mqlake.replication.auto_switch.term import MasterTerm
from mqlake.store.settings import BrokerRole
from mqlake.tls.settings import client_tls

_AGAIN = 1.0
"""Seconds after which the controller, or the master, is asked again if it did not answer."""

_UNKNOWN_HERE = (
    ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST,
    ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
)
"""What a controller answers that does not know this broker."""

_log = logging.getLogger(__name__)


class Membership:
    """Registers with the controllers, sends heartbeats, and takes the roles that they assign.

    It asks the controller at intervals, and at once if somebody reports another master. Only the
    answer of the controller says who the master is.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        assert state.replication.group is not None
        self._state, self._runtime, self._group = state, runtime, state.replication.group
        assert state.controllers is not None
        self._controllers = state.controllers
        now = runtime.settings
        self._client = RemotingClient(tls=client_tls(now), credentials=now.inner_credentials)
        self._identity = Identity(state.store.directory, runtime.settings)
        self._look = self._controllers.news
        self._looked = asyncio.Lock()
        self._applied = self._noted = -1
        self._is_registered = False
        self._failure: str | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin; until the controller answers, the broker is a slave without a master.

        Raises:
            StoreError: the store is of another broker name.
        """
        if (known := self._identity.known()) is not None:
            self._take_id(known)
        self._tasks = [asyncio.create_task(self._keep()), asyncio.create_task(self._beat())]

    async def stop(self) -> None:
        """Stop sending heartbeats: if this is the master, another one is elected."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._controllers.close()
        await self._client.close()

    def look_soon(self) -> None:
        """Ask the controller now: somebody has reported another master."""
        self._look.set()

    def _take_id(self, broker_id: int) -> None:
        settings = self._runtime.settings
        self._group.take_id(broker_id)
        if settings.is_slave:
            self._runtime.live.switch(msgspec.structs.replace(settings, broker_id=broker_id))

    async def _keep(self) -> None:
        while True:
            self._look.clear()
            try:
                await self._look_now()
            except Exception as error:  # noqa: BLE001 (a broker without this task has no master)
                self._report(error)
                pause = _AGAIN
            else:
                if self._failure is not None:
                    _log.info("the controller answers")
                self._failure = None
                pause = self._runtime.settings.sync_broker_metadata_period / 1000
                if self._is_without_master:
                    pause = _AGAIN
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._look.wait()

    def _report(self, error: Exception) -> None:
        failure = str(error) if isinstance(error, MqlakeError) else repr(error)
        if failure != self._failure:
            trace = None if isinstance(error, MqlakeError) else error
            _log.warning("the controller is not followed: %s", failure, exc_info=trace)
            self._failure = failure

    @property
    def _is_without_master(self) -> bool:
        """Whether this is a slave that does not know yet where its master sends the log."""
        return self._runtime.settings.is_slave and not self._state.replicas.master_ha_address

    async def _look_now(self) -> None:
        if not self._group.broker_id:
            milliseconds = self._state.store.clock.milliseconds()
            self._take_id(await self._identity.obtain(self._controllers, milliseconds))
        if not self._is_registered:
            await self._controllers.find_leader()
            await self._controllers.register(self._group.broker_id)
            self._is_registered = True
            self._send_heartbeat()
        await self._take(await self._current())

    async def _current(self) -> MasterTerm:
        """Return what the controller says; have a master elected if the group has no master.

        Raises:
            MqlakeError: it does not answer, or nobody can be elected.
        """
        try:
            term = await self._controllers.term()
            if term.master_id is not None:
                return term
            if self._runtime.settings.async_learner:
                raise MqlakeError(
                    "the group has no master, and this broker cannot be elected (asyncLearner)"
                )
            elected = await self._controllers.elect(self._group.broker_id)
            # Here, RocketMQ's controllers name the elected master, and some of them leave out the
            # in-sync set.
            return elected if elected.members else await self._controllers.term()
        except RemotingError as error:
            self._is_registered = error.code not in _UNKNOWN_HERE
            raise

    async def _take(self, term: MasterTerm) -> None:
        """Take the role that the controller assigns.

        Raises:
            MqlakeError: it cannot be taken now.
        """
        async with self._looked:
            before = self._group.term
            if before is not None and (term.number, term.version) < (before.number, before.version):
                return  # another answer was faster
            self._group.take_term(term)
            if term.number < self._group.epochs.last_number:
                raise MqlakeError(
                    f"the controller is at epoch {term.number}, but this log has epoch"
                    f" {self._group.epochs.last_number}: check that this store belongs to this"
                    " group"
                )
            if term.master_id == self._group.broker_id:
                await self._lead(term)
            else:
                await self._follow(term)
            if term.number != self._applied:
                if self._applied < 0:
                    await self._state.names.start()
                self._applied = term.number
                self._state.names.changed()

    async def _lead(self, term: MasterTerm) -> None:
        if term.master_id not in term.members:
            # Without the members, no slave would be waited for.
            raise MqlakeError("the controller says that the master is not in the in-sync set")
        replication, settings = self._state.replication, self._runtime.settings
        if settings.is_slave:
            self._state.replicas.found_master("", "")
            new = msgspec.structs.replace(settings, broker_role=BrokerRole.SYNC_MASTER, broker_id=0)
            await replication.switch(new)
        elif isinstance(replication.server, AutoSwitchServer):
            replication.take_term(term)
        if term.number != self._applied:
            self._state.topics.begin_term(term.number)
            _log.info("this broker, %d, is the master in epoch %d", term.master_id, term.number)

    async def _follow(self, term: MasterTerm) -> None:
        replication, replicas = self._state.replication, self._state.replicas
        if term.number != self._noted:
            self._noted = term.number
            _log.info("broker %s is the master in epoch %d", term.master_id, term.number)
        if not self._runtime.settings.is_slave:
            new = msgspec.structs.replace(
                self._runtime.settings,
                broker_role=BrokerRole.SLAVE,
                broker_id=self._group.broker_id,
            )
            await replication.switch(new)
        replicas.found_master(term.master_address, "")
        slave = replication.slave
        if not replicas.master_ha_address or (slave is not None and slave.problem):
            await self._find_log(term)

    async def _find_log(self, term: MasterTerm) -> None:
        """Ask a master where it sends its log; it may do so elsewhere than before.

        Raises:
            MqlakeError: it does not say, and has not said it before.
        """
        replicas = self._state.replicas
        try:
            replicas.found_master(term.master_address, await self._ha_address(term))
        except MqlakeError:
            if not replicas.master_ha_address:
                raise

    async def _ha_address(self, term: MasterTerm) -> str:
        """Ask a master where it sends its log.

        Raises:
            MqlakeError: it does not answer, or does not send it yet.
        """
        asked = request(RequestCode.EXCHANGE_BROKER_HA_INFO, ExchangeHaInfoHeader())
        answer = await self._client.call(term.master_address, asked)
        found = answer.header(ExchangeHaInfoHeader).master_ha_address
        if not found:
            raise MqlakeError(
                f"master {term.master_address}: it does not send its log to slaves yet"
            )
        return found

    # Heartbeats

    async def _beat(self) -> None:
        while True:
            if self._is_registered:
                try:
                    self._send_heartbeat()
                except Exception as error:  # noqa: BLE001 (without this task the broker counts as dead)
                    self._report(error)
            await asyncio.sleep(self._runtime.settings.broker_heartbeat_interval / 1000)

    def _send_heartbeat(self) -> None:
        settings, watermarks = self._runtime.settings, self._state.store.watermarks
        self._controllers.beat(
            ControllerHeartbeatHeader(
                cluster_name=settings.broker_cluster_name,
                broker_addr=settings.broker_address,
                broker_name=settings.broker_name,
                broker_id=self._group.broker_id,
                epoch=self._group.epochs.last_number,
                max_offset=watermarks.end,
                confirm_offset=watermarks.confirmed,
                heartbeat_timeout_mills=settings.controller_heart_beat_timeout_mills,
                election_priority=settings.broker_election_priority,
            )
        )
