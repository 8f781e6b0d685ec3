"""The routes of topics that clients use, as name servers know them.

Upstream: `TopicRouteService`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from mqlake.client.cluster import MASTER, Cluster
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.errors import ConnectionFailedError

REFRESH: Final = 20.0
"""Seconds after which the routes in use are requested again."""
_USED: Final = 300.0
"""Seconds after its last use until a route is forgotten."""
_UNKNOWN: Final = 1.0
"""Seconds for which a topic that no name server knows is not requested again."""
_MISSES: Final = 3
"""How often name servers may not know a topic before its route is forgotten: one that was started
again knows nothing before the brokers have registered.
"""
_MOST: Final = 20_000
"""Topics; the one that was not used for the longest time is forgotten first."""
_AT_ONCE: Final = 8
_AGAIN: Final = 1.0
"""Seconds between two requests for the addresses of all brokers."""

_log: Final = logging.getLogger("mqlake.proxy")


class _CachedRoute:
    def __init__(self, route: TopicRouteData | None, now: float) -> None:
        self.route, self.loaded, self.used = route, now, now
        self.misses = 0

    def use(self, now: float) -> None:
        self.used = now

    def update(self, route: TopicRouteData, now: float) -> None:
        self.route, self.loaded, self.misses = route, now, 0

    def miss(self) -> bool:
        """Note that no name server knows the topic; return whether it is over."""
        self.misses += 1
        return self.misses >= _MISSES


class ClusterRoutes:
    """The routes of topics, and the addresses of brokers.

    Args:
        names: asks the name servers.
    """

    def __init__(self, names: Cluster) -> None:
        self._names, self._now = names, asyncio.get_running_loop().time
        # In the order of their last use.
        self._known: dict[str, _CachedRoute] = {}
        self._loading: dict[str, asyncio.Task[TopicRouteData | None]] = {}
        self._addresses: dict[str, dict[int, str]] = {}
        self._asked = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def of(self, topic: str) -> TopicRouteData:
        """Return the route of a topic.

        Raises:
            RemotingError: TOPIC_NOT_EXIST: no name server knows it.
            ConnectionFailedError: no name server answers.
        """
        now = self._now()
        known = self._known.get(topic)
        if known is None or (known.route is None and now - known.loaded > _UNKNOWN):
            route = await self._load(topic)
        else:
            route = known.route
            known.use(now)
            self._known[topic] = self._known.pop(topic, known)
        if route is None:
            reason = f"No topic route info in name server for the topic: {topic}"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        return route

    async def master(self, broker: str) -> str | None:
        """Return the address of the master of a broker; None if no name server knows one."""
        found = self._addresses.get(broker, {}).get(MASTER)
        if found is None:
            await self._ask_for_brokers()
            found = self._addresses.get(broker, {}).get(MASTER)
        return found

    async def masters(self) -> list[str]:
        """Return the addresses of all masters that are known; ask for them if none is."""
        if not self._addresses:
            await self._ask_for_brokers()
        found = (ids.get(MASTER) for _, ids in sorted(self._addresses.items()))
        return [address for address in found if address is not None]

    def name_of(self, address: str) -> str | None:
        """Return the name of the broker with an address."""
        for name, ids in self._addresses.items():
            if address in ids.values():
                return name
        return None

    def suspect(self) -> None:
        """Look up the addresses of brokers again: one does not answer at its address."""
        self._start_asking()

    async def refresh(self) -> None:
        """Request the routes in use again, and forget those that are not used."""
        now = self._now()
        for topic, known in list(self._known.items()):
            if now - known.used > _USED or (known.route is None and now - known.loaded > _UNKNOWN):
                del self._known[topic]
        topics = list(self._known)
        for start in range(0, len(topics), _AT_ONCE):
            await asyncio.gather(
                *(self._load(topic) for topic in topics[start : start + _AT_ONCE]),
                return_exceptions=True,
            )

    async def close(self) -> None:
        """End what is running."""
        tasks: list[asyncio.Task[object]] = [*self._loading.values()]  # pyright: ignore[reportAssignmentType]
        if self._asking is not None:
            tasks.append(self._asking)  # pyright: ignore[reportArgumentType]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _load(self, topic: str) -> TopicRouteData | None:
        """Request a route once, however many ask for it."""
        task = self._loading.get(topic)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._request(topic))
            self._loading[topic] = task
            task.add_done_callback(lambda done: self._loaded(topic, done))
        return await asyncio.shield(task)

    def _loaded(self, topic: str, task: asyncio.Task[TopicRouteData | None]) -> None:
        del self._loading[topic]
        if not task.cancelled():
            task.exception()  # Whoever waits for it reports it.

    async def _request(self, topic: str) -> TopicRouteData | None:
        names, known, now = self._names, self._known.get(topic), self._now()
        route = await names.route_known(topic)
        if route is not None:
            if known is None or known.route is None:
                self._keep(topic, _CachedRoute(route, now))
            else:
                known.update(route, now)
            for data in route.broker_datas:
                self._addresses[data.broker_name] = data.broker_addrs
            return route
        if len(names.silent) >= len(names.name_servers):
            if known is not None and known.route is not None:
                return known.route
            why = "; ".join(str(error) for error in names.silent.values())
            raise ConnectionFailedError(f"no name server answers: {why}")
        if known is not None and known.route is not None and not known.miss():
            return known.route
        self._keep(topic, _CachedRoute(None, now))
        return None

    def _keep(self, topic: str, route: _CachedRoute) -> None:
        self._known.pop(topic, None)
        while len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[topic] = route

    async def _ask_for_brokers(self) -> None:
        """Request the addresses of all brokers, but not too often; all who ask wait for one
        answer.
        """
        self._start_asking()
        if self._asking is not None:
            await asyncio.shield(self._asking)

    def _start_asking(self) -> None:
        if self._asking is None and self._now() - self._asked >= _AGAIN:
            self._asking = asyncio.get_running_loop().create_task(self._request_brokers())
            self._asking.add_done_callback(self._asked_for_brokers)

    async def _request_brokers(self) -> None:
        try:
            table = (await self._names.cluster_info()).broker_addr_table
        except MqlakeError as error:
            _log.debug("no name server returns the brokers: %s", error)
            return
        self._asked = self._now()
        self._addresses = {name: data.broker_addrs for name, data in table.items()}

    def _asked_for_brokers(self, task: asyncio.Task[None]) -> None:
        self._asking = None
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the addresses of brokers are not refreshed", exc_info=error)
