"""The Java side: RocketMQ's own store, from Maven Central, behind the classes in tests/peer/."""

from __future__ import annotations

from pathlib import Path

from tests.peer import java_build
from tests.peer.rocketmq_store import SOURCE, start_jvm

from benchmarks.peer import Peer

JavaMissingError = java_build.JavaMissingError


def build() -> None:
    """Compile the classes and fetch the jars they need.

    Raises:
        JavaMissingError: no Java compiler, no Maven, or no jars to be had.
    """
    java_build.build(SOURCE)


def rocketmq_version() -> str:
    """Return the version of the store that was built against, read off its jar."""
    (jar,) = (java_build.BUILD / SOURCE.name / "jars").glob("rocketmq-store-*.jar")
    return jar.stem.removeprefix("rocketmq-store-")


def start(log: Path) -> Peer:
    """Start the JVM, with RocketMQ's usual collector and more heap than the store needs."""
    return start_jvm(log, "2g")
