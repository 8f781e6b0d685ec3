"""One connection to a cluster for all queries and tasks of a process."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Lock
from typing import Any, Protocol, TypeVar

from mqlake.client.access import ClientAccess
from mqlake.client.identity import DEFAULT_INSTANCE
from mqlake.client.instance import ClientInstance, give_back, share_instance
from mqlake.client.loop_thread import LoopThread

T = TypeVar("T")


class ClusterOptions(Protocol):
    """Which cluster, and how its servers are reached: options of a query, or of a task."""

    @property
    def name_servers(self) -> str: ...
    @property
    def access(self) -> ClientAccess: ...


class LiveConnection:
    """A client instance on its own thread, with one connection to each server.

    Attributes:
        instance: the client instance, for coroutines that this connection runs.
    """

    def __init__(self, name_servers: str, access: ClientAccess) -> None:
        self._thread = LoopThread("mqlake-spark")
        self.instance: ClientInstance = self._thread.run(_open(name_servers, access))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine."""
        return self._thread.run(work)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; return its future."""
        return self._thread.begin(work)

    def close(self) -> None:
        """Close the connections and end the thread."""
        self._thread.run(give_back(self.instance))
        self._thread.close()


async def _open(name_servers: str, access: ClientAccess) -> ClientInstance:
    return share_instance(
        name_servers, DEFAULT_INSTANCE, None, tls=access.tls, credentials=access.credentials
    )


_open_ones: dict[tuple[int, str, ClientAccess], LiveConnection] = {}
_opening = Lock()


def connection(cluster: ClusterOptions) -> LiveConnection:
    """Return this process's connection to a cluster; it stays open for later tasks.

    Spark's workers are forked, so a connection belongs to the process that opened it.
    """
    key = os.getpid(), cluster.name_servers, cluster.access
    with _opening:
        if key not in _open_ones:
            _open_ones[key] = LiveConnection(cluster.name_servers, cluster.access)
        return _open_ones[key]


def close_connections() -> None:
    """Close all connections of this process."""
    with _opening:
        mine = [key for key in _open_ones if key[0] == os.getpid()]
        for key in mine:
            _open_ones.pop(key).close()
