"""Brokers that the groups run on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mqlake.testing import broker
from tests.peer.rocketmq_cluster import Cluster

JAVA, MQLAKE = "RocketMQ 5.5.0", "mqlake"


class Addresses(NamedTuple):
    """Where a cluster listens: its name server, and its broker."""

    names: str
    broker: str


@contextmanager
def started(kind: str, directory: Path) -> Iterator[Addresses]:
    """Give a cluster of one broker.

    Raises:
        JavaMissingError: it cannot be built.
    """
    if kind == MQLAKE:
        with broker() as running:
            yield Addresses(running.name_server, running.address)
        return
    cluster = Cluster(directory, directory / "store", {"mappedFileSizeCommitLog": 1 << 27})
    cluster.start()
    try:
        yield Addresses(cluster.names, cluster.broker)
    finally:
        cluster.kill()
