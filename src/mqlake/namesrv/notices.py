"""Notify the brokers of a name that its smallest broker id has changed.

Upstream: `RouteInfoManager.notifyMinBrokerIdChanged`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from mqlake.errors import MqlakeError
from mqlake.namesrv.acting import SmallestIdChange
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.signature import Credentials
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.tls.options import ClientTls

_log: Final = logging.getLogger("mqlake.namesrv")

_SECONDS: Final = 3.0
"""Seconds that a broker has to answer. If it does not, it sees the change when it asks next."""
_AT_ONCE: Final = 16
"""Maximum number of brokers that are notified at the same time."""
_MOST_NAMES: Final = 1000
"""Maximum number of broker names whose brokers wait for a notice."""


class SmallestIdNotices:
    """Sends NOTIFY_MIN_BROKER_ID_CHANGE, one change of a broker name after the other.

    If a name changes faster than its brokers answer, they are notified of the latest change only.
    Addresses are what anyone has registered, so there are few connections at a time.
    """

    def __init__(
        self, tls: ClientTls | None = None, credentials: Credentials | None = None
    ) -> None:
        self._tls, self._credentials = tls, credentials
        self._waiting: dict[str, SmallestIdChange] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)

    def notify(self, name: str, change: SmallestIdChange) -> None:
        """Notify the brokers of a name soon; not if too many others wait."""
        if name not in self._tasks and len(self._tasks) >= _MOST_NAMES:
            _log.warning("brokers %s are not notified: %d names wait", name, len(self._tasks))
            return
        self._waiting[name] = change
        if name not in self._tasks:
            self._tasks[name] = asyncio.get_running_loop().create_task(self._send(name))

    async def stop(self) -> None:
        """Cancel all notices."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, name: str) -> None:
        # These connections are seldom needed: none is kept.
        client = RemotingClient(tls=self._tls, credentials=self._credentials)
        try:
            while (change := self._waiting.pop(name, None)) is not None:
                tells = (self._tell(client, address, change) for address in change.addresses)
                await asyncio.gather(*tells)
        finally:
            del self._tasks[name]
            await client.close()

    async def _tell(self, client: RemotingClient, address: str, change: SmallestIdChange) -> None:
        notice = request(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, change.header)
        try:
            async with self._room:
                await client.request(address, notice, _SECONDS)
        except MqlakeError as error:
            _log.info("broker %s is not notified of the smallest id: %s", address, error)
        except Exception as error:  # noqa: BLE001 (the other brokers are notified nevertheless)
            _log.error("broker %s is not notified of the smallest id", address, exc_info=error)
