"""A broker of each side, as a process of its own that can be stopped, killed and started."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from mqlake.broker.settings import FAST_PORT_DISTANCE
from mqlake.programs.ports import free_port
from tests.peer.rocketmq_cluster import Cluster

JAVA, MQLAKE = "RocketMQ 5.5.0", "mqlake"

_PATIENCE = 300
"""Seconds until mqlake listens or has stopped; it may have to compile kernels."""


class Side(ABC):
    """A broker on a store directory, which keeps it from one start to the next.

    Attributes:
        address: where the broker listens since the last start.
    """

    def __init__(self, directory: Path) -> None:
        """Make the directory."""
        directory.mkdir()
        self._directory = directory
        self.address = ""

    @abstractmethod
    def start(self, settings: Mapping[str, object]) -> None:
        """Return once the broker answers."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the broker in good order."""

    @abstractmethod
    def kill(self) -> None:
        """End the broker at once, if it runs."""


class Java(Side):
    """RocketMQ's broker, with a name server in the same JVM."""

    _cluster: Cluster | None = None

    def start(self, settings: Mapping[str, object]) -> None:
        self._cluster = Cluster(self._directory, self._directory / "store", settings)
        self._cluster.start()
        self.address = self._cluster.broker

    def stop(self) -> None:
        assert self._cluster is not None
        self._cluster.stop()

    def kill(self) -> None:
        if self._cluster is not None:
            self._cluster.kill()


class Mqlake(Side):
    """A process of mqlake's broker."""

    _process: subprocess.Popen[bytes] | None = None

    def start(self, settings: Mapping[str, object]) -> None:
        port = free_port(-FAST_PORT_DISTANCE)
        command = [sys.executable, "-m", "mqlake", "broker", "--port", str(port)]
        command += ["--store", str(self._directory / "store"), "--namesrv", "127.0.0.1:1"]
        for name, value in {"brokerIP1": "127.0.0.1", **settings}.items():
            command += ["--set", f"{name}={value}"]
        log = self._directory / "broker.log"
        with log.open("ab") as file:
            process = self._process = subprocess.Popen(command, stderr=file)
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                time.sleep(0.05)
            else:
                self.address = f"127.0.0.1:{port}"
                return
        raise RuntimeError(f"no broker: {log.read_text()[-2000:]}")

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_PATIENCE)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


SIDES: Mapping[str, type[Side]] = {MQLAKE: Mqlake, JAVA: Java}
