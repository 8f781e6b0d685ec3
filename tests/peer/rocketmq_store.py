"""Apache RocketMQ's own DefaultMessageStore in a JVM, opened on directories that mqlake wrote.

The classes in `rocketmq/` answer the requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peer import Peer

from mqlake.spark.launch import QUICK_START
from tests.peer.java_build import build
from tests.peer.java_start import java, keep_classes

SOURCE = Path(__file__).parent / "rocketmq"
OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref")

Answer = dict[str, Any]


def start_jvm(
    log: Path,
    heap: str,
    version: str | None = None,
    options: Sequence[str] = ("-XX:+UseG1GC",),
) -> Peer:
    """Start a JVM that answers requests; it logs to `log`, and leaves what it makes beside it.

    `version` is RocketMQ's release, 5.5.0 if it is not given; `options` are those of the JVM.

    Raises:
        JavaMissingError: it cannot be built.
    """
    return Peer("java", _command(log, heap, version, options), log)


def _command(log: Path, heap: str, version: str | None, options: Sequence[str]) -> list[str]:
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    words = [*options, f"-Xms{heap}", f"-Xmx{heap}", "-Duser.language=en", *opens]
    # user.home: RocketMQ makes directories there.
    home = f"-Duser.home={log.parent}"
    return java(build(SOURCE, version), [*words, home], "Peer")


class RocketMQ:
    """One JVM that has at most one store open; a new one starts after `kill`."""

    def __init__(self, directory: Path, version: str) -> None:
        """Start the JVM; `directory` is for its log, `version` is RocketMQ's release."""
        self._log, self._version = directory / "java.stderr", version
        self._start()

    def _start(self) -> None:
        self._command = _command(self._log, "512m", self._version, QUICK_START)
        self._jvm = Peer("java", self._command, self._log)

    def close(self) -> None:
        """Stop the JVM."""
        keep_classes(self._command, self._jvm.pid)
        self._jvm.close()

    def open(self, store: Path, settings: Mapping[str, object]) -> Answer:
        """Open a store as a broker does and dispatch all; settings have `broker.conf` names.

        Returns `seconds`, of which `load` seconds for the recovery, and `messages` in all queues.
        """
        return self._ask("open", store, json.dumps(settings))

    def shut_down(self) -> None:
        """Close the open store."""
        self._ask("close")

    def kill(self) -> None:
        """End the JVM as kill -9 does, with the store open."""
        keep_classes(self._command, self._jvm.pid)
        self._jvm.kill()
        self._start()

    def bounds(self) -> Answer:
        """Return `minOffset` and `maxOffset` of the log, `queues` and `checkpoint`."""
        return self._ask("bounds")

    def read(self) -> list[Answer]:
        """Return every message that a consumer finds, queue by queue."""
        return self._ask("read")["messages"]

    def by_key(self, questions: Iterable[Sequence[str]]) -> list[list[int]]:
        """Return the physical offsets found for each (topic, key) or (topic, key, index type)."""
        return self._ask("keys", json.dumps(list(questions)))["offsets"]

    def by_message_id(self, ids: Iterable[str]) -> list[str]:
        """Return, for each offset message id, the id of the message that is found with it."""
        return self._ask("ids", json.dumps(list(ids)))["ids"]

    def by_time(self, questions: Iterable[tuple[str, int, int, str]]) -> list[int]:
        """Return the queue offset for each (topic, queue id, milliseconds, LOWER or UPPER)."""
        return self._ask("times", json.dumps(list(questions)))["offsets"]

    def append(self, descriptions: Iterable[Mapping[str, object]]) -> list[Answer]:
        """Put messages, each described by the fields that `rocketmq/Append.java` reads."""
        return self._ask("append", json.dumps(list(descriptions)))["puts"]

    def rewrite_config(self, file: Path) -> None:
        """Load a configuration file as a broker does, and write it again as a broker does."""
        self._ask("rewrite-config", file)

    def _ask(self, *words: object) -> Answer:
        return self._jvm.ask(*words)
