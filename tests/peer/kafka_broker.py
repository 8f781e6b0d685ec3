"""A real KRaft broker on free ports of this machine, and clients for it.

The classes in `kafka/` answer the clients' requests.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peer import Peer

from mqlake.spark.launch import QUICK_START
from tests.peer.java_build import build
from tests.peer.java_start import java, keep_classes
from tests.peer.rocketmq_cluster import free_ports

SOURCE = Path(__file__).parent / "kafka"
CLUSTER_ID = "bXFsYWtlLWthZmthLXBlZQ"
START, STOP = 60, 60
"""Seconds."""

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={logs}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.ms=-1
auto.create.topics.enable=false
"""


def start_clients(log: Path, version: str | None = None, options: Sequence[str] = ()) -> Peer:
    """Start a JVM that answers requests for topics, producers, consumers and recoveries.

    `version` is Kafka's release, the newest that is tested if it is not given; `options` are those
    of the JVM.

    Raises:
        JavaMissingError: it cannot be built.
    """
    return Peer("kafka", java(build(SOURCE, version), [*options, "-Xmx512m"], "Peer"), log)


class Broker:
    """A broker over a log directory of its own, started and stopped by its process.

    Attributes:
        logs: its log directory.
    """

    def __init__(
        self, directory: Path, version: str | None = None, options: Sequence[str] = ()
    ) -> None:
        """Format the log directory.

        `version` is Kafka's release, the newest that is tested if it is not given; `options` are
        those of its JVM.

        Raises:
            JavaMissingError: no Kafka can be fetched.
            CalledProcessError: Kafka refused.
        """
        self.logs = directory / "logs"
        self._log = directory / "broker.log"
        self._settings = directory / "server.properties"
        self._port, controller = free_ports(2)
        self._settings.write_text(
            _PROPERTIES.format(port=self._port, controller=controller, logs=self.logs)
        )
        self._process: subprocess.Popen[bytes] | None = None
        classes = build(SOURCE, version)
        words = [*options, "-Xmx512m"]
        self._command = java(classes, words, "kafka.Kafka", self._settings)
        words = ["format", "-t", CLUSTER_ID, "-c", str(self._settings)]
        subprocess.run(
            java(classes, QUICK_START, "kafka.tools.StorageTool", *words),
            check=True,
            capture_output=True,
        )

    @property
    def bootstrap(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the process if it does not run, and return once it listens.

        Raises:
            RuntimeError: it has ended, or does not listen in time.
        """
        if self._process is not None:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until = time.monotonic() + START
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"no broker: {self._log.read_text()[-2000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the process in good order."""
        if self._process is not None:
            keep_classes(self._command, self._process.pid)
            self._process.terminate()
            self._process.wait(STOP)
            self._process = None

    def kill(self) -> None:
        """End the process as kill -9 does."""
        if self._process is not None:
            keep_classes(self._command, self._process.pid)
            self._process.kill()
            self._process.wait()
            self._process = None

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0
