"""The servers that the clients talk to: RocketMQ's own proxy, and mqlake's gRPC service."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.peer.java_build import build
from tests.peer.java_start import java
from tests.peer.rocketmq_cluster import CALM, PATIENT, QUICK, Cluster, free_ports
from tests.peer.rocketmq_proxy import Proxy
from tests.peer.rocketmq_store import OPENED

SERVERS = Path(__file__).parent / "programs" / "grpc_servers"
JAVA, MQLAKE, PROXY = "RocketMQ 5.5.0", "mqlake", "proxy of mqlake"
BROKER = "broker-a"
SETTINGS: Mapping[str, object] = {
    "brokerName": BROKER,
    "brokerIP1": "127.0.0.1",
    "mappedFileSizeCommitLog": 1 << 26,
    "enablePropertyFilter": "true",
    "recallMessageEnable": "true",
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1000,
}
"""Of the brokers of both sides."""

_PATIENCE = 300
"""Seconds until mqlake listens; it may have to compile kernels."""


class Side(ABC):
    """A name server, a broker and a gRPC endpoint, on one store from one start to the next.

    Attributes:
        names: the address of the name server.
        broker: the address of the broker, for administration.
        endpoint: where gRPC clients connect to.
    """

    def __init__(self, directory: Path, settings: Mapping[str, object] | None = None) -> None:
        """Choose ports, and make the directory."""
        directory.mkdir(parents=True)
        self._directory = directory
        self._settings = {**SETTINGS, **(settings or {})}
        self._processes: list[subprocess.Popen[bytes]] = []
        names, broker, grpc, self._ha, self._remoting = free_ports(5)
        self._ports = {"names": names, "broker": broker, "grpc": grpc}
        self.names, self.broker = f"127.0.0.1:{names}", f"127.0.0.1:{broker}"
        self.endpoint = f"127.0.0.1:{grpc}"

    @abstractmethod
    def start(self) -> None:
        """Return once the endpoint answers."""

    @property
    def process_ids(self) -> list[int]:
        """Of the processes that serve, the name server's excepted."""
        return [process.pid for process in self._processes]

    def kill(self) -> None:
        """End all processes at once."""
        for process in self._processes:
            process.kill()
            process.communicate()  # closes its pipes
        self._processes.clear()

    def restart(self) -> None:
        """Kill what serves gRPC, and start it again at the same address."""
        self.kill()
        self.start()

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _write(self, name: str, values: Mapping[str, object]) -> str:
        path = self._directory / name
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return str(path)


class Java(Side):
    """RocketMQ's proxy in local mode: one JVM, with a name server."""

    def start(self) -> None:
        names = {"listenPort": self._ports["names"], "kvConfigPath": self._directory / "kv.json"}
        store = self._directory / "store"
        broker = {
            "listenPort": self._ports["broker"],
            "haListenPort": self._ha,
            "brokerIP2": "127.0.0.1",
            "namesrvAddr": self.names,
            "storePathRootDir": store,
            "storePathCommitLog": store / "commitlog",
            **CALM,
            **PATIENT,
            **self._settings,
        }
        proxy = self._directory / "rmq-proxy.json"
        proxy.write_text(json.dumps(self._proxy()))
        files = [self._write("namesrv.conf", names), self._write("broker.conf", broker), str(proxy)]
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        homes = [f"-Duser.home={self._directory}", f"-Drocketmq.home.dir={self._directory}"]
        options = [*self._options(), *opens, *homes]
        log = self._log("java")
        with log.open("ab") as errors:
            process = subprocess.Popen(
                java(build(SERVERS), options, "Servers", *files),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self._processes.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if line == b"registered\n":
                return
        raise RuntimeError(f"no proxy: {log.read_text()[-2000:]}")

    def _options(self) -> Sequence[str]:
        return QUICK

    def _proxy(self) -> dict[str, object]:
        return {
            "rocketMQClusterName": "DefaultCluster",
            "namesrvAddr": self.names,
            "grpcServerPort": self._ports["grpc"],
            "remotingListenPort": self._remoting,
            "localServeAddr": "127.0.0.1",
            "transactionHeartbeatPeriodSecond": 1,  # until then, no broker can ask a producer
        }


class Mqlake(Side):
    """A process of mqlake's broker that serves gRPC, and one of its name server."""

    def start(self) -> None:
        self._launch_names()
        self._launch("broker", [*self._broker(), "--grpc-port", str(self._ports["grpc"])])
        self._wait_for_all()

    def _launch_names(self) -> None:
        names = ["namesrv", "--bind", "127.0.0.1", "--port", str(self._ports["names"])]
        names += ["--set", f"kvConfigPath={self._directory / 'kv.json'}"]
        self._launch("names", names)

    def _broker(self) -> list[str]:
        broker = ["broker", "--port", str(self._ports["broker"]), "--namesrv", self.names]
        broker += ["--store", str(self._directory / "store")]
        for name, value in self._settings.items():
            broker += ["--set", f"{name}={value}"]
        return broker

    def _wait_for_all(self) -> None:
        for name in self._ports:
            self._wait(name)

    def _launch(self, name: str, words: list[str]) -> None:
        with self._log(name).open("ab") as log:
            command = [sys.executable, "-m", "mqlake", *words]
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    @property
    def process_ids(self) -> list[int]:
        return super().process_ids[1:]

    def _wait(self, name: str) -> None:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and all(each.poll() is None for each in self._processes):
            try:
                socket.create_connection(("127.0.0.1", self._ports[name])).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        logs = "".join(path.read_text()[-2000:] for path in self._directory.glob("*.log"))
        raise RuntimeError(f"nothing listens for {name}: {logs}")

    def stop(self) -> None:
        """Stop all processes in good order."""
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            process.wait(_PATIENCE)
        self._processes.clear()


class MqlakeCluster(Mqlake):
    """Processes of mqlake's name server, its broker and its proxy before that."""

    def start(self) -> None:
        proxy = ["proxy", "--namesrvAddr", self.names, "--bind", "127.0.0.1"]
        self._launch_names()
        self._launch("broker", self._broker())
        self._launch("grpc", [*proxy, "--grpc-port", str(self._ports["grpc"])])
        self._wait_for_all()


class JavaCluster(Java):
    """A name server, a broker, and RocketMQ's proxy in cluster mode."""

    def __init__(self, directory: Path, settings: Mapping[str, object] | None = None) -> None:
        super().__init__(directory, settings)
        self._stack = ExitStack()

    def start(self) -> None:
        cluster = Cluster(self._directory, self._directory / "store", self._settings)
        self._stack.callback(cluster.kill)
        cluster.start()
        self.names, self.broker = cluster.names, cluster.broker
        proxy = Proxy(self._directory / "proxy", cluster.names)
        self._stack.callback(proxy.close)
        self.endpoint = proxy.endpoint

    def kill(self) -> None:
        self._stack.close()


_LITE: Mapping[str, object] = {"enableLmq": "true"}
SIDES: Mapping[str, Callable[[Path], Side]] = {
    JAVA: Java,
    MQLAKE: partial(Mqlake, settings=_LITE),
    PROXY: partial(MqlakeCluster, settings=_LITE),
}
LITE_SIDES: Mapping[str, Callable[[Path], Side]] = {
    JAVA: partial(JavaCluster, settings={**_LITE, "enableMultiDispatch": "true"}),
}
"""Those with other servers for lite topics: RocketMQ's proxy serves them in cluster mode only."""
COMPARED = (JAVA, MQLAKE)
"""The sides of the tables."""
