"""What a run needs: name servers, a broker of Java and one of mqlake, and drivers of Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mqlake.programs.ports import free_port
from mqlake.spark.java import find_java
from tests.client.servers import start_broker
from tests.peer.rocketmq_cluster import Cluster as JavaCluster
from tests.programs.processes import BrokerProcess
from tests.spark.servers import ROOT

JAVA, OURS = "broker-a", "broker-b"


class Brokers:
    """A broker of each kind, registered at a name server that lives longer than both.

    Java's broker shares a JVM with a name server of its own, which nobody uses.

    Attributes:
        names: the address of the name server.
        java, ours: the brokers.
    """

    def __init__(self, home: Path, names: str) -> None:
        self.home, self.names = home, names
        (home / JAVA).mkdir()
        settings = {"mappedFileSizeCommitLog": 16 << 20, "mappedFileSizeConsumeQueue": 60_000}
        self.java = JavaCluster(home / JAVA, home / JAVA / "store", settings, also=names)
        self.java.start()
        self.ours: BrokerProcess = start_broker(home, OURS, names, {})

    @property
    def addresses(self) -> tuple[str, str]:
        return self.java.broker, self.ours.address

    @property
    def stores(self) -> dict[str, Path]:
        """The store directory of each broker."""
        return {name: self.home / name / "store" for name in (JAVA, OURS)}

    def kill_java(self) -> None:
        """Kill Java's broker, and start it again."""
        self.java.kill()
        self.java.start()

    def kill_ours(self) -> None:
        """Kill mqlake's broker, and start it again."""
        self.ours.kill()
        self.ours.start()

    def close(self) -> None:
        self.java.kill()
        self.ours.kill()


@contextmanager
def brokers(home: Path) -> Generator[Brokers]:
    """Run both brokers until the block ends.

    Raises:
        JavaMissingError: Java's cannot be built.
    """
    port = free_port()
    command = [sys.executable, "-m", "mqlake", "namesrv", "--port", str(port)]
    command += ["--set", f"kvConfigPath={home / 'kv.json'}"]
    with (home / "namesrv.log").open("wb") as log:
        names = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        made = Brokers(home, f"127.0.0.1:{port}")
        try:
            yield made
        finally:
            made.close()
    finally:
        names.kill()
        names.wait()


class Driver:
    """One run of `driver`, in a process group of its own with its JVM."""

    def __init__(self, home: Path, mode: str, *words: str) -> None:
        self._log = home / f"{mode}.log"
        module = "tests.peer.spark_cluster.driver"
        command = [sys.executable, "-m", module, mode, *words, str(home)]
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def check(self) -> None:
        """Fail if the driver has ended by itself.

        Raises:
            AssertionError: it has; with the end of what it said.
        """
        assert not self.has_ended, self.said

    @property
    def succeeded(self) -> bool:
        return self._process.poll() == 0

    @property
    def said(self) -> str:
        """The end of what the driver printed."""
        return self._log.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        """Kill it with its JVM, as the end of its host would."""
        if not self.has_ended:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
