"""The whole of RocketMQ's tests, several classes at the same time, each with servers of its own."""

from __future__ import annotations

import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.peer.compatibility.java_class import FAILED, SOURCE, Outcome
from tests.peer.compatibility.servers import Servers, started
from tests.peer.java_build import jars

RELEASE = "5.5.0"

_OTHERS = ("container.", "dledger.", "autoswitchrole.", "grpc.v2.GrpcBase")
"""Tests that do not run on the brokers that they are given, and a base class."""

Results = dict[str, Outcome]
"""By "class#method"."""


def class_names() -> list[str]:
    """Return the classes of tests, without the package that all of them share.

    Raises:
        JavaMissingError: they cannot be fetched.
    """
    prefix = "org/apache/rocketmq/test/"
    with zipfile.ZipFile(jars(SOURCE) / f"rocketmq-test-{RELEASE}-tests.jar") as archive:
        names = [name for name in archive.namelist() if name.endswith("IT.class")]
    found = [name.removeprefix(prefix).removesuffix(".class").replace("/", ".") for name in names]
    return sorted(name for name in found if not name.startswith(_OTHERS))


def run(
    side: str,
    classes: Iterable[str],
    logs: Path,
    at_once: int,
    progress: Callable[[str, str, Outcome], None],
) -> Results:
    """Run these classes against MQLAKE or JAVA; methods that fail are run once more.

    `logs` gets a file for each class; `progress` is called with a class, a method, its outcome.
    """
    waiting = deque(classes)
    results: Results = {}
    lent: list[Servers] = []

    def work() -> None:
        with started(side, logs) as servers:
            lent.append(servers)
            while waiting:
                name = waiting.popleft()
                for method, outcome in run_class(servers, name).items():
                    results[f"{name}#{method}"] = outcome
                    progress(name, method, outcome)

    with ThreadPoolExecutor(at_once) as pool:
        try:
            for done in [pool.submit(work) for _ in range(at_once)]:
                done.result()
        except BaseException:
            waiting.clear()
            for servers in lent:
                servers.abandon()
            raise
    return dict(sorted(results.items()))


def run_class(
    servers: Servers, name: str, methods: Sequence[str] = (), again: int = 1
) -> dict[str, Outcome]:
    """Run one class, or some of its methods; those that fail are run `again` times more.

    RocketMQ's tests have deadlines of their own, which a busy machine may miss.
    """
    outcomes = servers.run(name, methods)
    for _ in range(again):
        failed = [method for method, outcome in outcomes.items() if outcome.state == FAILED]
        if not failed:
            break
        outcomes |= servers.run(name, failed)
    return outcomes
