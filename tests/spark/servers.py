"""Spark servers from the PySpark package, on the loopback interface, for the time of a test."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mqlake.spark import cds
from mqlake.spark.java import find_java
from mqlake.spark.launch import QUICK_START, spark_home

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0
"""Seconds until a server has started on a busy machine; it takes three."""

_LAUNCHER = {"SPARK_LAUNCHER_OPTS": shlex.join(QUICK_START)}
"""The archive of Spark's classes does not fit the launcher, which would print that to stdout."""


def quick_start() -> str:
    """Return the options of a JVM that is to start soon rather than run long."""
    archive = cds.archive(find_java(), spark_home())
    shared: list[str] = []
    if archive is not None and cds.usable(archive):
        cds.note_use(archive)
        shared.append(f"-XX:SharedArchiveFile={archive}")
    return shlex.join([*QUICK_START, *shared])


def quick_environment() -> dict[str, str]:
    """Return the variables with which a program's own Spark starts soon."""
    return {"SPARK_SUBMIT_OPTS": quick_start(), **_LAUNCHER}


class Cluster:
    """A standalone master, and workers of one core each.

    Attributes:
        master: its URL.
    """

    def __init__(self, scratch: Path, servers: ExitStack, memory: str) -> None:
        self._scratch, self._servers, self._memory = scratch, servers, memory
        self._workers: list[subprocess.Popen[bytes]] = []
        self.master, _ = servers.enter_context(
            _spark_class(
                scratch / "master",
                r"Starting Spark master at (spark://\S+)\s",
                "org.apache.spark.deploy.master.Master",
                *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
            )
        )

    def add_worker(self) -> None:
        """Start one more worker; return once the master knows it."""
        home = self._scratch / f"worker-{len(self._workers)}"
        _, process = self._servers.enter_context(
            _spark_class(
                home,
                r"Successfully registered with master (\S+)\s",
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1"),
                *("--memory", self._memory, "--work-dir", str(home / "work"), self.master),
            )
        )
        self._workers.append(process)

    def kill_worker(self) -> None:
        """Kill the newest worker with its executor, as the end of its host would."""
        os.killpg(self._workers[-1].pid, signal.SIGKILL)
        self._workers[-1].wait()


@contextmanager
def cluster(scratch: Path, workers: int = 2, memory: str = "512m") -> Iterator[Cluster]:
    """Run a master and workers; `memory` is what each has for executors."""
    with ExitStack() as servers:
        cluster = Cluster(scratch, servers, memory)
        for _ in range(workers):
            cluster.add_worker()
        yield cluster


@contextmanager
def connect_server(scratch: Path) -> Iterator[str]:
    """Run a Spark Connect server with two cores and retries; give its `sc://` URL."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": quick_start(),
    }
    with _spark_class(
        scratch / "connect",
        r"Spark Connect server started at: (\S+:\d+)\s",
        "org.apache.spark.deploy.SparkSubmit",
        *("--master", "local[2,4]"),
        *(word for item in settings.items() for word in ("--conf", "=".join(item))),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        "spark-internal",
    ) as (address, _):
        yield f"sc://{address}"


@contextmanager
def _spark_class(
    home: Path, started: str, *command: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a class of Spark; give what the group of `started` matches in its log, and the process.

    It leads a process group, in which whatever it starts is, too.
    """
    home.mkdir(parents=True)
    log = home / "log"
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "1g",
        "SPARK_DAEMON_JAVA_OPTS": quick_start(),
        **_LAUNCHER,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    program = [str(spark_home() / "bin" / "spark-class"), *command]
    with log.open("wb") as output:
        server = subprocess.Popen(
            program, cwd=home, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield _wait(server, log, re.compile(started)), server
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait(server: subprocess.Popen[bytes], log: Path, started: re.Pattern[str]) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        if found := started.search(log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')[-3000:]}")
