"""The clients that are measured: a Python process, and a JVM with RocketMQ's client."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.peer import java_build

from benchmarks.bench import Bench, remove
from benchmarks.broker.sides import MqlakeBroker
from benchmarks.peer import ROOT, Peer

SOURCE = ROOT / "tests" / "peer" / "rocketmq_load"
TITLES = {"mqlake": "mqlake", "java": "Java"}


@contextmanager
def clients(bench: Bench) -> Iterator[dict[str, Peer]]:
    """Give both clients, started; they are ended afterwards."""
    java = ["java", "-Xms1g", "-Xmx1g", f"-Duser.home={bench.directory}"]
    java += ["-cp", java_build.build(SOURCE), "Peer"]
    peers = {
        "mqlake": Peer(
            "mqlake", [sys.executable, "-m", "benchmarks.client.peer"], bench.directory / "python"
        ),
        "java": Peer("java", java, bench.directory / "java"),
    }
    try:
        yield peers
    finally:
        for peer in peers.values():
            peer.close()


@contextmanager
def a_broker(bench: Bench) -> Iterator[MqlakeBroker]:
    """Give mqlake's broker with a name server; its store is removed afterwards."""
    home = bench.directory / "client-broker"
    broker = MqlakeBroker(home)
    try:
        yield broker
    finally:
        broker.stop()
        remove(home)


def java_version() -> str:
    """Return the release of RocketMQ's client, read off its jar."""
    (jar,) = java_build.jars(SOURCE).glob("rocketmq-client-*.jar")
    return jar.stem.removeprefix("rocketmq-client-")
