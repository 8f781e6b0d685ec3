"""A broker with a name server as processes that are measured: mqlake's, or Java's."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.peer.rocketmq_cluster import Cluster

from mqlake.programs.ports import free_port

# What a broker gets that a machine of this size is for; RocketMQ's own scripts ask for 8 GiB.
JVM = ("-Xms1g", "-Xmx1g")
SETTINGS = {"autoCreateTopicEnable": "true", "fileReservedTime": "1", "brokerName": "broker-a"}
START = 60
"""Seconds."""

_TICKS = os.sysconf("SC_CLK_TCK")


class Side(Protocol):
    """A broker that runs.

    Attributes:
        names: address of its name server.
        broker: its own address.
        process_id: of the process that is the broker.
    """

    names: str
    broker: str

    @property
    def process_id(self) -> int: ...

    def stop(self) -> None:
        """End it."""
        ...


def java(directory: Path, **settings: str) -> Side:
    """Start RocketMQ's broker, and a name server in the same JVM."""
    directory.mkdir()
    cluster = Cluster(directory, directory / "store", {**SETTINGS, **settings}, JVM)
    cluster.start()
    return cluster


def mqlake(directory: Path) -> Side:
    """Start mqlake's broker with a name server."""
    return MqlakeBroker(directory)


@contextmanager
def started(
    directory: Path, makers: Mapping[str, Callable[[Path], Side]]
) -> Generator[dict[str, Side]]:
    """Run a broker of each side."""
    brokers: dict[str, Side] = {}
    try:
        for name, make in makers.items():
            brokers[name] = make(directory / name)
        yield brokers
    finally:
        for broker in brokers.values():
            broker.stop()


def pin(side: Side, core: int) -> None:
    """Let all threads that a broker has run on one core."""
    for task in os.listdir(f"/proc/{side.process_id}/task"):
        os.sched_setaffinity(int(task), [core])


class MqlakeBroker:
    """`mqlake broker` on free ports, on the directory `store` in a directory."""

    def __init__(self, directory: Path, **settings: str) -> None:
        directory.mkdir(exist_ok=True)
        port, names = free_port(-2), free_port()
        self.broker, self.names = f"127.0.0.1:{port}", f"127.0.0.1:{names}"
        words = [f"--store={directory / 'store'}", f"--port={port}", f"--namesrv-port={names}"]
        for name, value in (SETTINGS | {"brokerIP1": "127.0.0.1"} | settings).items():
            words += ["--set", f"{name}={value}"]
        command = [str(Path(sys.executable).with_name("mqlake")), "broker", *words]
        with (directory / "log").open("w") as log:
            self._process = subprocess.Popen(command, stderr=log, env=environment(directory))
        self._wait(port)

    @property
    def process_id(self) -> int:
        return self._process.pid

    def _wait(self, port: int) -> None:
        end = time.monotonic() + START
        while time.monotonic() < end and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                time.sleep(0.01)
            else:
                return
        self._process.kill()
        raise RuntimeError("mqlake broker has not started")

    def stop(self) -> None:
        """End it in good order."""
        self._process.terminate()
        self._process.wait(START)


def environment(directory: Path) -> dict[str, str]:
    """Return that of a program whose modules are compiled once, as an installation has them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(directory.parent / "bytecode")}


def cpu_seconds(process_id: int) -> float:
    """Return how much processor time a process has used."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident(process_id: int) -> int:
    """Return the memory of a process in bytes, without pages of files."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return sum(int(values[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem"))


def whole_resident(process_id: int) -> int:
    """Return the memory of a process in bytes, with pages of files."""
    return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * os.sysconf(
        "SC_PAGE_SIZE"
    )
