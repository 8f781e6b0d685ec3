"""A cluster as one user sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from mqlake.admin.admin import Admin
from mqlake.admin.each_broker import BrokerFailure, change_each
from mqlake.client.access import ClientAccess
from mqlake.client.cluster import MASTER, MasterBroker
from mqlake.console.cluster.aged import NO_ANSWER, AgedValues, BackgroundValue
from mqlake.console.cluster.bounded_admin import BoundedAdmin
from mqlake.protocol.bodies.route import BrokerData
from mqlake.protocol.signature import Credentials

T = TypeVar("T")

SECONDS: Final = 3.0
"""How old what a page shows may be."""


_POINTS: Final = 720
"""An hour, if a page refreshes itself."""


class ClusterRates:
    """Points for a plot; the oldest go first."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, float, float]] = deque(maxlen=_POINTS)

    def add(self, at: int, into: float, out: float) -> None:
        """Add a point.

        Args:
            at: milliseconds.
            into, out: messages a second.
        """
        self._points.append((at // 1000, round(into, 2), round(out, 2)))

    @property
    def columns(self) -> list[list[float]]:
        """Times in seconds, and the rates in and out; empty for fewer than two points."""
        if len(self._points) < 2:
            return []
        return [list(column) for column in zip(*self._points, strict=True)]


class ClusterView:
    """Asks a cluster in the name of one user.

    Args:
        credentials: of the user; None for those of `access`.
        seconds: how long a page waits for a broker.
        now: returns seconds.

    Attributes:
        admin: for requests; what they return is not kept.
        kept: answers that are kept for a few seconds.
        rates: noted when pages show them.
    """

    def __init__(
        self,
        name_servers: str,
        access: ClientAccess,
        credentials: Credentials | None,
        seconds: float,
        now: Callable[[], float],
    ) -> None:
        self._bounded = BoundedAdmin(
            name_servers, access, credentials or access.credentials, seconds, now
        )
        self.admin: Admin = self._bounded
        self.kept: AgedValues = self._bounded.kept
        self.rates = ClusterRates()
        self._now = now
        self._slow: dict[str, BackgroundValue[Any]] = {}

    async def close(self) -> None:
        """Close all connections."""
        for each in self._slow.values():
            each.close()
        await self.admin.close()

    def background(self, name: str, fetch: Callable[[], Awaitable[T]]) -> BackgroundValue[T]:
        """Return a value that is fetched in the background.

        Args:
            fetch: used when the value is asked for the first time.
        """
        return self._slow.setdefault(name, BackgroundValue(self._now, fetch))

    async def known(self, asked: Awaitable[T], nothing: T, silent: list[BrokerFailure]) -> T:
        """Return what a page asked for; `nothing` if no broker answers.

        Args:
            silent: gets the brokers that do not answer, if none does.
        """
        try:
            return await asked
        except NO_ANSWER as error:
            silent += await self._silent_masters() or [BrokerFailure("The cluster", error)]
            return nothing

    async def _silent_masters(self) -> list[BrokerFailure]:
        reasons = self._bounded.silent_servers
        try:
            masters = await self.masters()
        except NO_ANSWER:
            return []
        return [
            BrokerFailure(name, reasons[address])
            for name, address in masters.items()
            if address in reasons
        ]

    async def brokers(self) -> list[BrokerData]:
        """Return all brokers that are registered, by cluster and name."""
        info = await self.admin.cluster_info()
        table = info.broker_addr_table.values()
        return sorted(table, key=lambda each: (each.cluster, each.broker_name))

    async def masters(self) -> dict[str, str]:
        """Return the addresses of masters, by the name of the broker."""
        return {
            data.broker_name: data.broker_addrs[MASTER]
            for data in await self.brokers()
            if MASTER in data.broker_addrs
        }

    async def on_masters(
        self, cluster: str, work: Callable[[MasterBroker], Awaitable[object]]
    ) -> str:
        """Do something on each master of a cluster at the same time; return their names.

        Raises:
            PartialChangeError: some brokers refused, or did not answer.
        """
        changed = await change_each(await self.admin.brokers(cluster), work)
        return ", ".join(broker.name for broker, _ in changed)

    async def clusters(self) -> list[str]:
        """Return the names of all clusters."""
        return sorted({data.cluster for data in await self.brokers()})
