"""mqlake's proxy for gRPC clients, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.peer.rocketmq_cluster import free_ports
from tests.until import wait_until

_STARTED = "gRPC clients are served"


class MqlakeProxy:
    """`mqlake proxy` before the brokers of a cluster.

    Attributes:
        endpoint: where gRPC clients connect to.
    """

    def __init__(self, directory: Path, names: str) -> None:
        """Start it, and return once it listens.

        Args:
            directory: for its log.
            names: of the name server.
        """
        directory.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        self.endpoint = f"127.0.0.1:{port}"
        log = directory / "proxy.log"
        command = [sys.executable, "-m", "mqlake", "proxy", "-n", names, "--grpc-port", str(port)]
        with log.open("w") as errors:
            self._process = subprocess.Popen(command, stderr=errors)

        def is_started() -> bool:
            assert self._process.poll() is None, log.read_text()[-2000:]
            return _STARTED in log.read_text()

        wait_until(is_started, why=log.read_text)

    def close(self) -> None:
        """Stop it."""
        self._process.terminate()
        assert self._process.wait() == 0
