"""Request the parts of logic queues that other brokers hold (upstream: `RpcClientImpl`)."""

from __future__ import annotations

import asyncio

from mqlake.broker.settings import BrokerSettings
from mqlake.client.cluster import MASTER, Cluster
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.header import Header
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.store.live_settings import Current
from mqlake.tls.settings import client_tls

_FRESH = 30.0
"""Seconds for which the addresses of brokers are considered valid."""
_SOONEST = 1.0
"""Seconds between two requests for them."""


class Forwarder:
    """One connection to each of the other brokers to which requests were forwarded."""

    def __init__(self, settings: Current[BrokerSettings]) -> None:
        self._settings = settings
        now = settings.now
        self._cluster = Cluster(
            now.namesrv_addr, tls=client_tls(now), credentials=now.inner_credentials
        )
        self._loop = asyncio.get_running_loop()
        self._addresses: dict[str, str] = {}
        self._asked_at = float("-inf")
        self._turn = asyncio.Lock()

    async def stop(self) -> None:
        """Close the connections."""
        await self._cluster.close()

    async def ask(self, broker_name: str, code: RequestCode, header: Header) -> Command:
        """Return the answer of another broker's master, whatever its code.

        Args:
            header: names the other broker's own queue (`lo` is False), so that the request is not
                forwarded again.

        Raises:
            RemotingError: the broker is not registered, or does not answer.
        """
        try:
            address = await self._address(broker_name, _FRESH)
            try:
                return await self._ask(address, code, header)
            except ConnectionFailedError:
                again = await self._address(broker_name, _SOONEST)
                if again == address:
                    raise
                return await self._ask(again, code, header)
        except RemotingError:
            raise
        except MqlakeError as error:
            reason = f"broker {broker_name}, which has a part of the logic queue: {error}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason) from None

    async def _ask(self, address: str, code: RequestCode, header: Header) -> Command:
        seconds = self._settings.now.forward_timeout / 1000
        return await self._cluster.client.request(address, request(code, header), seconds)

    async def _address(self, broker_name: str, fresh: float) -> str:
        async with self._turn:
            age = self._loop.time() - self._asked_at
            if age >= fresh or (age >= _SOONEST and broker_name not in self._addresses):
                await self._refresh()
        found = self._addresses.get(broker_name)
        if found is None:
            reason = f"cannot find addr for broker {broker_name}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return found

    async def _refresh(self) -> None:
        self._asked_at = self._loop.time()
        table = (await self._cluster.cluster_info()).broker_addr_table
        self._addresses = {
            name: data.broker_addrs[MASTER]
            for name, data in table.items()
            if MASTER in data.broker_addrs
        }
