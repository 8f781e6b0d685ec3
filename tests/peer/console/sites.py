"""A console in a process of its own, for a cluster of mqlake's or of RocketMQ's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mqlake.testing import broker
from tests.peer.console.content import Content
from tests.peer.rocketmq_cluster import Cluster, free_ports
from tests.until import PATIENCE, wait_until

ROOT = Path(__file__).parents[3]
SIDES = ("mqlake", "rocketmq")


class ConsoleSite(NamedTuple):
    """A console.

    Attributes:
        side: whose broker it shows.
        url: without a path, and without a slash at its end.
        names: the name server of its cluster.
        store: the directory of the broker's store.
        content: what the cluster has.
    """

    side: str
    url: str
    names: str
    store: Path
    content: Content


@contextmanager
def started_console(directory: Path, names: str, options: Sequence[str] = ()) -> Generator[str]:
    """Yield the URL of a console while it runs.

    Args:
        directory: for its log.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    log = directory / "console.log"
    command = [sys.executable, "-m", "tests.peer.console.patient", "console"]
    command += ["-n", names, "--port", str(port)]
    command += ["--broker-timeout", str(PATIENCE)]  # A busy machine's broker is not silent.
    with log.open("w") as errors:
        process = subprocess.Popen([*command, *options], stderr=errors, cwd=ROOT)

    def is_started() -> bool:
        assert process.poll() is None, log.read_text()[-2000:]
        return "console at" in log.read_text()

    try:
        wait_until(is_started, why=log.read_text)
        yield f"http://127.0.0.1:{port}"
        assert "Traceback" not in log.read_text(), log.read_text()[-4000:]
    finally:
        process.terminate()
        process.wait()


@contextmanager
def started_site(side: str, path: Path) -> Generator[ConsoleSite]:
    """Yield the console of a cluster with content.

    Raises:
        JavaMissingError: RocketMQ cannot be built.
    """
    store = path / "store"
    with _cluster(side, path, store) as names, Content(names) as content:
        options = ["--store", str(store)]
        with started_console(path / "console", names, options) as url:
            yield ConsoleSite(side, url, names, store, content)


@contextmanager
def _cluster(side: str, path: Path, store: Path) -> Generator[str]:
    if side == "mqlake":
        with broker(store, recallMessageEnable=True, brokerIP1="127.0.0.1") as running:
            yield running.name_server
        return
    path.mkdir(parents=True, exist_ok=True)
    settings = {
        "recallMessageEnable": "true",
        "mappedFileSizeCommitLog": 64 << 20,
        "autoCreateTopicEnable": "true",
        "traceTopicEnable": "true",
    }
    cluster = Cluster(path, store, settings)
    try:
        cluster.start()
        yield cluster.names
    finally:
        cluster.stop()
