"""A name server and a broker of the real RocketMQ in one JVM, on free ports of this machine."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mqlake.broker.settings import FAST_PORT_DISTANCE
from mqlake.programs.ports import free_port
from mqlake.spark.launch import QUICK_START
from tests.peer.java_build import build
from tests.peer.java_start import java, keep_classes
from tests.peer.rocketmq_store import OPENED

SOURCE = Path(__file__).parent / "rocketmq_cluster"
NEWEST_4_BROKER = "4.9.7"
"""The newest 4.9.x of which there is a broker."""

STOP = 60
"""Seconds."""

QUICK = ("-Xms256m", "-Xmx512m", "-Dtls.server.mode=disabled", *QUICK_START)
"""Options of a JVM that is up soon, and does not do much.

Each of a broker's servers would create a key for TLS: most of the processor time of its start.
"""

CALM: Mapping[str, object] = {"transactionMetricFlushInterval": 200, "timerFlushIntervalMs": 60_000}
"""Settings of a broker that leaves the processor to others.

A thread waits in a busy loop for the first of these intervals, in milliseconds, when the broker
starts. After each of the second ones the slots of the whole timer wheel are compared.
"""

PATIENT: Mapping[str, object] = {
    "brokerFastFailureEnable": "false",
    "osPageCacheBusyTimeOutMills": 60_000,
}
"""Settings of a broker that refuses nothing because its machine is busy."""

PROVIDERS: Mapping[str, str] = {
    f"{kind}MetadataProvider": f"org.apache.rocketmq.auth.{kind}.provider.{name}MetadataProvider"
    for kind, name in (
        ("authentication", "LocalAuthentication"),
        ("authorization", "LocalAuthorization"),
    )
}
"""Settings of a broker with users and policies, which it keeps only if it is told where."""


class Cluster:
    """A cluster on a store directory, from `start` to `stop`.

    Attributes:
        names: the address of its name server.
        broker: the address of its broker, `broker-a`.
    """

    def __init__(
        self,
        directory: Path,
        store: Path,
        settings: Mapping[str, object],
        options: Sequence[str] = QUICK,
        also: str = "",
        version: str | None = None,
        of_names: Mapping[str, object] | None = None,
    ) -> None:
        """Write its configuration; `directory` is for that, and for what it makes beside the store.

        `options` are those of the JVM: others than QUICK are for one that is measured, which keeps
        RocketMQ's own settings; `also` is another name server that the broker registers at;
        `version` is RocketMQ's release, 5.5.0 if it is not given; `of_names` are settings of the
        name server.

        Raises:
            JavaMissingError: it cannot be built.
        """
        port, ha, names = free_ports(3)
        self.names, self.broker = f"127.0.0.1:{names}", f"127.0.0.1:{port}"
        self._log = directory / "cluster.log"
        server: dict[str, object] = {
            "listenPort": names,
            "kvConfigPath": directory / "kvConfig.json",
            **(of_names or {}),
        }
        broker = {
            "brokerName": "broker-a",
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "listenPort": port,
            "haListenPort": ha,
            "namesrvAddr": f"{self.names};{also}" if also else self.names,
            "storePathRootDir": store,
            "storePathCommitLog": store / "commitlog",
            "waitTimeMillsInSendQueue": 10_000,  # a busy machine is no reason to refuse a message
            **({**CALM, **PATIENT} if options is QUICK else {}),
            **settings,
        }
        files: list[str] = []
        for name, values in (("namesrv.conf", server), ("broker.conf", broker)):
            path = directory / name
            path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
            files.append(str(path))
        # 4.9 does not start without these.
        (directory / "conf").mkdir(exist_ok=True)
        for name in ("namesrv", "broker"):
            (directory / "conf" / f"logback_{name}.xml").write_text("<configuration/>")
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        homes = [f"-Duser.home={directory}", f"-Drocketmq.home.dir={directory}"]
        words = [*options, *opens, *homes]
        self._path, self._options, self._files = build(SOURCE, version), words, files
        self._command: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and return once the broker is registered.

        Raises:
            RuntimeError: it has ended; with the end of what it said.
        """
        # An archive of its classes may be there now.
        self._command = java(self._path, self._options, "Cluster", *self._files)
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        said: list[str] = []
        for line in self._process.stdout:
            if line == "registered\n":
                return
            said.append(line)
        raise RuntimeError(f"no cluster: {said} {self._log.read_text()[-2000:]}")

    @property
    def process_id(self) -> int:
        """Of its JVM, while it runs."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """Stop it in good order."""
        process = self._process
        if process is None:
            return
        self._process = None
        keep_classes(self._command, process.pid)
        try:
            process.communicate(timeout=STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise

    def kill(self) -> None:
        """End it at once; a broker that stops in good order takes its time."""
        if self._process is not None:
            keep_classes(self._command, self._process.pid)
            self._process.kill()
            self._process.communicate()
            self._process = None


def free_ports(count: int) -> list[int]:
    """Return ports that are free now, each with the one that a broker listens on below it.

    No other process gets them from `free_port` until this one ends: a JVM takes seconds to listen.
    """
    found: list[int] = []
    while len(found) < count:
        port = free_port(-FAST_PORT_DISTANCE)
        try:
            for each in (port, port - FAST_PORT_DISTANCE):
                _reserve(each)
        except OSError:  # another process was faster
            continue
        found.append(port)
    return found


def _reserve(port: int) -> None:
    """Keep a port bound until this process ends; servers may listen on it, as they reuse it."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", port))
        keeper.detach()
