"""The processes that are killed: a broker that serves gRPC, or a broker and a proxy before it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from tests.broker.running import next_port
from tests.programs.forked import ForkedBroker

INVISIBLE = 12_000
"""Milliseconds for which messages are invisible at first that a push consumer receives. What a
broker that was killed believes to be in somebody's hands holds up its queue for so long, if the
group consumes in order.
"""
SHORTEST = 1000
"""The same that a simple consumer can ask for."""
BROKER, PROXY, BOTH = "the broker", "the proxy", "the proxy and the broker"


class Servers(ABC):
    """Processes that start again at the same addresses, on the same store.

    Attributes:
        kinds: what can be killed.
        endpoint: where gRPC clients connect to.
        names: the address of the name server.
    """

    kinds: ClassVar[tuple[str, ...]]
    names: str

    def __init__(self) -> None:
        self._port = next_port()
        self.endpoint = f"127.0.0.1:{self._port}"

    @abstractmethod
    def kill(self, kind: str) -> None:
        """End processes at once."""

    @abstractmethod
    def start(self, kind: str) -> None:
        """Start them again; return once they listen."""

    @abstractmethod
    def close(self) -> None:
        """End all processes."""


class LocalServers(Servers):
    """A broker with the gRPC service."""

    kinds = (BROKER,)

    def __init__(self, directory: Path) -> None:
        super().__init__()
        settings: dict[str, object] = {
            "grpcServerPort": self._port,
            "flushDiskType": "ASYNC_FLUSH",
            "defaultInvisibleTimeMills": INVISIBLE,
            "minInvisibleTimeMillsForRecv": SHORTEST,
        }
        self._broker = _GrpcBroker(directory / "store", directory / "broker.log", settings)
        self._broker.wait_for(self._port)
        self.names = self._broker.name_server

    def kill(self, kind: str) -> None:
        self._broker.kill()

    def start(self, kind: str) -> None:
        self._broker.start()
        self._broker.wait_for(self._port)

    def close(self) -> None:
        self._broker.kill()


class ClusterServers(Servers):
    """A broker, and a proxy before it."""

    kinds = (BROKER, PROXY, BOTH)

    def __init__(self, directory: Path) -> None:
        super().__init__()
        settings = {"flushDiskType": "SYNC_FLUSH"}
        self._broker = _GrpcBroker(directory / "store", directory / "broker.log", settings)
        self.names, self._log = self._broker.name_server, directory / "proxy.log"
        self._start_proxy()

    def _start_proxy(self) -> None:
        words = ["proxy", "--namesrvAddr", self.names, "--bind", "127.0.0.1"]
        words += ["--set", f"defaultInvisibleTimeMills={INVISIBLE}"]
        words += ["--set", f"minInvisibleTimeMillsForRecv={SHORTEST}"]
        self._proxy = self._broker.fork([*words, "--grpc-port", str(self._port)])
        self._broker.wait_for(self._port)

    def kill(self, kind: str) -> None:
        if kind in (PROXY, BOTH):
            self._proxy.kill()
            self._proxy.wait()
        if kind in (BROKER, BOTH):
            self._broker.kill()

    def start(self, kind: str) -> None:
        if kind in (BROKER, BOTH):
            self._broker.start()
        if kind in (PROXY, BOTH):
            self._start_proxy()

    def close(self) -> None:
        self.kill(BOTH)


class _GrpcBroker(ForkedBroker):
    def wait_for(self, port: int) -> None:
        """Return once a port listens."""
        self._wait(port)


SETUPS: Mapping[str, Callable[[Path], Servers]] = {
    "a broker": LocalServers,
    "a proxy before a broker": ClusterServers,
}
