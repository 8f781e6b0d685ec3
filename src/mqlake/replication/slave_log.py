"""A slave: its commit log follows that of its master.

Upstream: `DefaultHAClient`.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from mqlake.errors import MqlakeError
from mqlake.remoting.client import RemotingClient
from mqlake.replication.auto_switch.group import Group
from mqlake.replication.auto_switch.reception import AutoSwitchReception
from mqlake.replication.comparison import BeginOtherwiseError, DivergedError
from mqlake.replication.master_log import MasterLog, ask
from mqlake.replication.reception import Reception
from mqlake.replication.settings import ReplicationSettings
from mqlake.store.live_settings import Current
from mqlake.store.port import Store
from mqlake.tls.settings import client_tls

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
"""Maximum seconds until a failed connection is retried; the pause doubles each time."""
_DIVERGED = 30.0
"""The same if the logs differ."""
_ADVICE = "start this slave with an empty store, or make it the master if it has what counts"
_ADVICE_IF_LED = "start this broker with an empty store: the controller decides who is the master"

_log = logging.getLogger(__name__)


class SlaveLog:
    """Copies a master's log into this store, from `start` to `stop`.

    Args:
        group: the group under a controller; None without a controller.

    Attributes:
        master_address: the "host:port" at which the master serves clients; None if unknown.
        problem: why the log is not copied now; None while it is copied.
        has_diverged: whether the last comparison has shown that the master's log is another one.
        reception: receives the log over one connection after another.
    """

    def __init__(
        self, settings: Current[ReplicationSettings], store: Store, group: Group | None
    ) -> None:
        self._store = store
        self._advice = _ADVICE_IF_LED if settings.now.enable_controller_mode else _ADVICE
        self._loop = asyncio.get_running_loop()
        now = settings.now
        self._client = RemotingClient(tls=client_tls(now), credentials=now.inner_credentials)
        self._address: str | None = settings.now.ha_master_address or None
        self._is_fixed = self._address is not None
        self._addressed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.master_address: str | None = None
        self.problem: str | None = "its master's address is not known"
        self.has_diverged = False
        tls = client_tls(now) if now.ha_tls_enable else None
        self.reception = (
            Reception(settings, store, activated=self._activated, tls=tls)
            if group is None
            else AutoSwitchReception(settings, store, group, self._activated, tls)
        )
        self._connection: asyncio.Task[None] | None = None

    # What `haStatus` shows

    @property
    def transferred_in_second(self) -> int:
        """Bytes that were received in the last second."""
        return self.reception.rate.of_last_second(self._loop.time())

    @property
    def max_offset(self) -> int:
        """Physical offset at which this store's log ends."""
        return self._store.watermarks.end

    # The master's address

    @property
    def master_ha_address(self) -> str | None:
        """The "host:port" of the master's port for slaves; None if unknown.

        If `haMasterAddress` is set, setting another address has no effect.
        """
        return self._address

    def follow(self, master_address: str | None, address: str | None) -> None:
        """Follow the master with these addresses, for clients and for slaves, once it is known."""
        self.master_address = master_address or None
        if self._is_fixed or (address or None) == self._address:
            return
        _log.info("the master's address for slaves is %s", address or "not known any more")
        self._address = address or None
        self._addressed.set()
        if self._connection is not None:
            self._connection.cancel()

    async def start(self) -> None:
        """Begin to follow the master once its address is known."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the connection. Received bytes stay."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._store.copying.drop()
        await self._client.close()

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            address = await self._known_address()
            received = self.reception.received
            try:
                await self._follow_until_changed(address)
                continue
            except BeginOtherwiseError:
                continue
            except DivergedError as error:
                self.has_diverged = True
                reason, pause = f"{error}; {self._advice}", _DIVERGED
            except (MqlakeError, OSError) as error:
                reason = str(error) or type(error).__name__
            except Exception as error:  # noqa: BLE001 (a slave without this task follows no more)
                reason = f"{type(error).__name__}: {error}"
                _log.error("master %s: the log is not followed", address, exc_info=error)
            if self.reception.received != received:
                pause = _FIRST_PAUSE
            self._report(address, reason)
            self._addressed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._addressed.wait()
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _report(self, address: str, reason: str) -> None:
        """Log why the log is not followed, once for as long as the reason is the same."""
        if reason != self.problem:
            _log.error("master %s: the log is not followed: %s", address, reason)
            self.problem = reason

    async def _known_address(self) -> str:
        while self._address is None:
            self._addressed.clear()
            await self._addressed.wait()
        return self._address

    async def _follow_until_changed(self, address: str) -> None:
        """Follow a master until its address changes.

        Raises:
            OSError, MqlakeError: the connection cannot be opened, or is over.
            BeginOtherwiseError: the log must be requested in another way.
        """
        self._connection = asyncio.create_task(self._follow(address))
        try:
            await self._connection
        except asyncio.CancelledError:
            if self._task is not None and self._task.cancelling():
                raise
        finally:
            self._connection.cancel()
            await asyncio.gather(self._connection, return_exceptions=True)
            self._connection = None

    async def _follow(self, address: str) -> None:
        await self.reception.follow(address, await self._master_log())

    def _activated(self) -> None:
        self.problem, self.has_diverged = None, False

    async def _master_log(self) -> MasterLog | None:
        if self.master_address is None:
            return None
        try:
            return await ask(self._client, self.master_address)
        except MqlakeError as error:
            _log.info("where the master's log is, is not known: %s", error)
            return None
