"""The part of a broker that copies its log: a master's server, or a slave's client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from mqlake.errors import MqlakeError, StoreError
from mqlake.protocol.bodies.ha import HaClientInfo, HaConnectionInfo, HaRuntimeInfo
from mqlake.remoting.memory_budget import MemoryBudget
from mqlake.replication.auto_switch.group import Alter, Group
from mqlake.replication.auto_switch.server import AutoSwitchServer
from mqlake.replication.auto_switch.term import MasterTerm
from mqlake.replication.ha_server import HaServer
from mqlake.replication.replicas import Replicas
from mqlake.replication.settings import ReplicationSettings
from mqlake.replication.slave_log import SlaveLog
from mqlake.store.live_settings import LiveSettings
from mqlake.store.port import Epochs, InSyncSet, Store

_STOP, _DEMOTION = 1.0, 5.0
"""Maximum seconds that a stop, or a demotion, waits until slaves have everything."""

S = TypeVar("S", bound=ReplicationSettings)
"""Which may be more than those of the replication: a change of the role replaces them all."""

_log = logging.getLogger(__name__)


class Replication(Generic[S]):
    """Copies one broker's commit log, from `start` to `stop`.

    Args:
        replicas: gives a slave the address of its master.
        cut: called with a physical offset from which on this log differs from that of its group
            under a controller.

    Attributes:
        server: on a master; None on a slave.
        slave: on a slave; None on a master.
        group: the group under a controller; None without a controller.
    """

    def __init__(
        self,
        settings: LiveSettings[S],
        store: Store,
        replicas: Replicas,
        cut: Callable[[int], object],
        alter: Alter | None = None,
    ) -> None:
        self._settings, self._store, self._replicas = settings, store, replicas
        self._budget: MemoryBudget | None = None
        self.group = Group(Epochs(store.directory), cut, alter) if alter is not None else None
        self._given_up: InSyncSet | None = None
        # Whether the store was prepared to lead, and not to follow since.
        self._was_made_to_lead = False
        self._make()
        replicas.on_change.append(self.follow_known_master)

    def _make(self) -> None:
        is_slave = self._settings.now.is_slave
        self.server = None if is_slave else self._make_server()
        self.slave = SlaveLog(self._settings, self._store, self.group) if is_slave else None

    def _make_server(self) -> HaServer:
        in_sync_set = self._store.copies.in_sync_set
        if self.group is None or in_sync_set is None:
            return HaServer(self._settings, self._store)
        return AutoSwitchServer(self._settings, self._store, self.group, in_sync_set)

    @property
    def accepts_tls(self) -> bool:
        """Whether slaves may copy the log over TLS."""
        return self.server is not None and self.server.accepts_tls

    @property
    def listens_at(self) -> str:
        """Where slaves connect: "host:port"; "" if nobody listens there."""
        return self.server.address if self.server else ""

    async def start(self, budget: MemoryBudget | None = None) -> None:
        """Listen for slaves, or begin to follow the master.

        Args:
            budget: of the memory for all connections of the broker; None: no maximum.

        Raises:
            MqlakeError: the port is in use.
        """
        self._budget = budget
        await self._begin()

    async def _begin(self) -> None:
        if self.server is not None:
            await self.server.start(self._budget)
        if self.slave is not None:
            await self.slave.start()

    async def stop(self) -> None:
        """Close all connections of slaves, or the one to the master."""
        if self.server is not None:
            await self.server.drain(_STOP)
            await self.server.stop()
        if self.slave is not None:
            await self.slave.stop()

    async def switch(self, settings: S) -> None:
        """Promote or demote this broker: apply settings with another role.

        Raises:
            StoreError: it cannot take the role; it keeps the old one.
        """
        was_slave, old = self._settings.now.is_slave, self._settings.now
        if was_slave == settings.is_slave:
            self._settings.switch(settings)
            return
        try:
            await (self._promote(settings) if was_slave else self._demote(settings))
        except MqlakeError as error:
            await self._keep(old, error)
        self.follow_known_master()
        _log.info("the role is %s now, was %s", settings.broker_role.value, old.broker_role.value)

    async def _keep(self, old: S, reason: MqlakeError) -> NoReturn:
        """Undo a switch that failed, and report it."""
        failure = f"the role stays {old.broker_role.value}: {reason}"
        try:
            await self.stop()
            self._settings.switch(old)
            if self.group is not None and old.is_slave:
                self._give_up_term(self._store.watermarks.dispatched)
            elif self.group is not None:
                self._take_back_term()
            self._make()
            if old.is_slave and self._was_made_to_lead:
                # A store that was prepared to lead expects no topic to start again. If its master
                # deletes and creates a topic, it would hide the first messages of the new topic.
                await self._prepare_to_follow()
            await self._begin()
            self.follow_known_master()
        except Exception as error:  # noqa: BLE001 (the answer says both)
            _log.error("the log is not copied any more", exc_info=error)
            failure = f"{failure}; and the log is not copied until a restart: {error}"
        raise StoreError(failure) from reason

    async def _promote(self, settings: S) -> None:
        assert self.slave is not None
        await self.slave.stop()
        await self._store.copying.lead()
        self._was_made_to_lead = True
        if self.group is not None:
            await self._begin_term(self.group)
        # Clients must not see a master that is a slave again because its port is in use.
        server = self._make_server()
        await server.bind(settings)
        self._settings.switch(settings)
        self.server, self.slave = server, None
        await self._begin()

    async def _prepare_to_follow(self) -> None:
        await self._store.copying.follow()
        self._was_made_to_lead = False

    async def _begin_term(self, group: Group) -> None:
        """Begin this master's epoch; from now on the in-sync set counts."""
        term, store = group.term, self._store
        assert term is not None
        watermarks = store.watermarks
        await asyncio.to_thread(
            group.epochs.begin, term.number, watermarks.min_offset, watermarks.end
        )
        in_sync_set = InSyncSet(group.broker_id, watermarks.dispatched)
        in_sync_set.set(term.members, term.version)
        store.copies.lead(in_sync_set)

    def _give_up_term(self, shown: int | None) -> None:
        """Acknowledge no more messages, and show no more before the new master confirms them."""
        copies = self._store.copies
        self._given_up = copies.in_sync_set
        copies.follow(shown)
        copies.tell()

    def _take_back_term(self) -> None:
        """Be the master of the old term again, which acknowledges nothing without its members."""
        copies = self._store.copies
        if self._given_up is not None and copies.in_sync_set is None:
            copies.lead(self._given_up)

    def take_term(self, term: MasterTerm) -> None:
        """Continue as the master in another term, or with another in-sync set."""
        assert self.group is not None
        assert isinstance(self.server, AutoSwitchServer)
        watermarks, epochs = self._store.watermarks, self.group.epochs
        if term.number > epochs.last_number:
            # It blocks on the disk here: bytes sent meanwhile would be of the wrong epoch.
            epochs.begin(term.number, watermarks.min_offset, watermarks.end)
        self.server.watch.take(term)

    async def _demote(self, settings: S) -> None:
        assert self.server is not None
        await self._prepare_to_follow()
        shown = self._store.copies.shown
        # Nothing is put from here on: who is promoted then lacks nothing.
        self._settings.switch(settings)
        if self.group is None:
            await self.server.drain(_DEMOTION)
        else:
            self._give_up_term(shown)
        await self.server.stop()
        self._make()
        await self._begin()

    def follow_known_master(self) -> None:
        """Let a slave follow the master that name servers or a controller have named."""
        if self.slave is not None:
            self.slave.follow(self._replicas.master_address, self._replicas.master_ha_address)

    def status(self) -> HaRuntimeInfo:
        """Return how far the copies of the log are."""
        if (slave := self.slave) is not None:
            client = HaClientInfo(
                master_addr=slave.master_ha_address or "",
                transferred_byte_in_second=slave.transferred_in_second,
                max_offset=slave.max_offset,
                last_read_timestamp=slave.reception.last_read,
                last_write_timestamp=slave.reception.last_write,
                master_flush_offset=slave.reception.master_flush_offset,
                problem=slave.problem or "",
            )
            return HaRuntimeInfo(master=False, ha_client_runtime_info=client)
        connections = self.server.connections if self.server else []
        return HaRuntimeInfo(
            master=True,
            master_commit_log_max_offset=self._store.watermarks.end,
            in_sync_slave_nums=sum(each.is_in_sync for each in connections),
            ha_connection_info=[
                HaConnectionInfo(
                    addr=each.address,
                    slave_ack_offset=each.acknowledged,
                    diff=each.lacks,
                    in_sync=each.is_in_sync,
                    transferred_byte_in_second=each.transferred_in_second,
                    transfer_from_where=each.transferred_from,
                )
                for each in connections
            ],
        )
