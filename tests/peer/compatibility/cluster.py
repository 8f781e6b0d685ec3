"""A name server and three brokers of mqlake, each a process, as RocketMQ's tests expect them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from mqlake.broker.settings import FAST_PORT_DISTANCE
from mqlake.programs.ports import free_port

CLUSTER = "DefaultCluster"
BROKERS = ("TestBrokerName_1", "TestBrokerName_2", "TestBrokerName_3")
NAMES = "namesrv"
SETTINGS: dict[str, object] = {
    "brokerClusterName": CLUSTER,
    "brokerIP1": "127.0.0.1",
    "recallMessageEnable": "true",
    "mappedFileSizeCommitLog": 100 << 20,
    "maxIndexNum": 1000,
    "maxHashSlotNum": 4000,
    "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
    "maxTransferCountOnMessageInMemory": 1024,
}
"""What the tests' own `IntegrationTestBase` gives its brokers."""

PROXY = "proxy"
GRPC_SETTINGS: dict[str, object] = {
    "minInvisibleTimeMillsForRecv": 3,
    "grpcClientConsumerMinLongPollingTimeoutMillis": 0,
}
"""What the tests' own `GrpcBaseIT` sets."""

_PATIENCE = 300
"""Seconds until a process listens, or has stopped; the first one may have to compile kernels."""


class Cluster:
    """Four processes that run while the block does, and are stopped by their ids at its end.

    Attributes:
        names: the address of the name server.
        brokers: the address of each broker, by its name.
        grpc: the gRPC port of each broker and of the proxy, by its name; empty without.
    """

    def __init__(self, directory: Path, has_grpc: bool = False) -> None:
        """Choose ports; `directory` is for stores and logs; `has_grpc` adds gRPC and a proxy."""
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        names = free_port()
        self.names = f"127.0.0.1:{names}"
        self._ports = {NAMES: names}
        for name in BROKERS:
            self._ports[name] = free_port(-FAST_PORT_DISTANCE)
        self.brokers = {name: f"127.0.0.1:{self._ports[name]}" for name in BROKERS}
        self.grpc: dict[str, int] = {}
        if has_grpc:
            self.grpc = {name: free_port() for name in (*BROKERS, PROXY)}
            self._ports[PROXY] = self.grpc[PROXY]

    def __enter__(self) -> Self:
        try:
            for name in self._ports:
                self._launch(name)
            for name in self._ports:
                self._wait(name)
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        try:
            for process in self._processes.values():
                process.wait(_PATIENCE)
        finally:
            self._kill()

    def stop(self, name: str) -> None:
        """Stop one process in good order.

        Raises:
            TimeoutExpired: it does not stop.
        """
        self._processes[name].send_signal(signal.SIGTERM)
        self._processes.pop(name).wait(_PATIENCE)

    def start(self, name: str) -> None:
        """Start a process that was stopped: at the same address, on the same store.

        Raises:
            RuntimeError: it does not listen; with the end of its log.
        """
        self._launch(name)
        self._wait(name)

    def _launch(self, name: str) -> None:
        command = [sys.executable, "-m", "mqlake"]
        if name == NAMES:
            command += ["namesrv", "--bind", "127.0.0.1"]
            command += ["--set", f"kvConfigPath={self._directory / 'kvConfig.json'}"]
        elif name == PROXY:
            command += ["proxy", "--namesrvAddr", self.names, "--bind", "127.0.0.1"]
        else:
            command += ["broker", "--store", str(self._directory / name), "--namesrv", self.names]
            for setting, value in {"brokerName": name, **SETTINGS}.items():
                command += ["--set", f"{setting}={value}"]
        if name in self.grpc:
            command += ["--grpc-port", str(self.grpc[name])]
            for setting, value in GRPC_SETTINGS.items():
                command += ["--set", f"{setting}={value}"]
        if name != PROXY:
            command += ["--port", str(self._ports[name])]
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(command, stderr=log)

    def _wait(self, name: str) -> None:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self._processes[name].poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self._ports[name])).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError(f"{name} does not listen: {self._log(name).read_text()[-2000:]}")

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _kill(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._processes.clear()
