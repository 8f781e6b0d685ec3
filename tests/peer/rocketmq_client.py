"""Stock RocketMQ clients and mqadmin in one JVM, against any name server.

The classes in `rocketmq_client/` do what is asked; they are compiled once for each release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peer import Peer

from mqlake.spark.launch import QUICK_START
from tests.peer.java_build import build, jars
from tests.peer.java_start import java, keep_classes

SOURCE = Path(__file__).parent / "rocketmq_client"
EXAMPLES = Path(__file__).parent / "rocketmq_examples"
NEWEST, NEWEST_4 = "5.5.0", "4.9.8"

REBALANCE = {NEWEST: 600_000, NEWEST_4: 1000}
"""Milliseconds between rebalances that nobody asked for: 5.x must be told by the broker, 4.9 has
to try again where the lock of a queue is not free yet."""


class Clients:
    """A JVM with the clients of one release."""

    def __init__(
        self,
        directory: Path,
        version: str = NEWEST,
        rebalance: int | None = None,
        of_java: Mapping[str, object] | None = None,
    ) -> None:
        """Start it; what it writes goes to `directory`.

        `rebalance`: milliseconds between rebalances, instead of those of the release above;
        `of_java`: further system properties.

        Raises:
            JavaMissingError: it cannot be built.
        """
        path = build(SOURCE, version)
        if version == NEWEST:
            path += "".join(f":{jar}" for jar in jars(EXAMPLES).glob("rocketmq-example*.jar"))
        properties = {
            "user.home": directory,
            "java.io.tmpdir": directory,
            "rocketmq.client.logUseSlf4j": "false",
            "rocketmq.client.rebalance.waitInterval": rebalance or REBALANCE[version],
            "com.rocketmq.remoting.client.connect.timeout": 60_000,
            **(of_java or {}),
        }
        options = ["-Xmx256m", *QUICK_START]
        options += [f"-D{name}={value}" for name, value in properties.items()]
        self._command = java(path, options, "Peer")
        log = directory / "clients.stderr"
        self._jvm = Peer(f"clients {version}", self._command, log, directory)

    def close(self) -> None:
        """Stop the JVM."""
        keep_classes(self._command, self._jvm.pid)
        self._jvm.close()

    def mqadmin(self, names: str, commands: Sequence[Sequence[str]]) -> list[str]:
        """Run commands of mqadmin, all at a time; return what each printed."""
        commands = [[*command, "-n", names] for command in commands]
        return self._jvm.ask("mqadmin", names, json.dumps(commands))["printed"]

    def features(self, names: str, topics: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Run features, each on the topic beside it, all at a time; return what happened."""
        return self._jvm.ask("features", names, json.dumps(list(topics.items())))

    def hold(self, names: str, topic: str, group: str, producers: str) -> dict[str, str]:
        """Send forty messages and consume them; the clients stay until `let_go`.

        Returns the `unique` key and the `offset` message id of the last message, and the consumer's
        `client` id.
        """
        return self._jvm.ask("hold", names, json.dumps([[topic, group, producers]]))

    def let_go(self, names: str) -> None:
        """Shut those clients down."""
        self._jvm.ask("let go", names, "[]")

    def join(self, names: str, mode: str, topic: str, group: str, name: str) -> None:
        """Start a member of a group: "concurrent", "ordered", "broadcasting" or "pop"."""
        self._jvm.ask("join", names, json.dumps([[mode, topic, group, name]]))

    def leave(self, names: str, name: str) -> None:
        """Shut a member down."""
        self._jvm.ask("leave", names, json.dumps([[name]]))

    def events(self, names: str) -> list[list[Any]]:
        """Return what members did since the last call.

        Milliseconds since 1970, the member, what it did ("deliver", "finish" or "fail"), the
        message's body and id, its queue as topic, broker name and number, and its queue offset.
        """
        return self._jvm.ask("events", names, "[]")["events"]

    def send(self, names: str, topic: str, count: int) -> None:
        """Send messages to a topic's four queues in turn."""
        self._jvm.ask("send", names, json.dumps([[topic, str(count)]]))

    def produce(self, names: str, topic: str, queues: int) -> None:
        """Begin to send numbered messages, one producer to each queue, until `stop_producing`."""
        self._jvm.ask("produce", names, json.dumps([[topic, str(queues)]]))

    def produced(self) -> tuple[list[list[int]], int]:
        """Return the numbers acknowledged since the last call, by queue, and the count of others.

        A message's body begins with its queue and its number.
        """
        return self._taken(self._jvm.ask("produced", "", "[]"))

    def stop_producing(self) -> tuple[list[list[int]], int]:
        """Stop these producers; return what `produced` returns."""
        return self._taken(self._jvm.ask("produce no more", "", "[]"))

    @staticmethod
    def _taken(answer: dict[str, Any]) -> tuple[list[list[int]], int]:
        return answer["acknowledged"], answer["others"]

    def lag(self, names: str, topic: str, group: str, count: int) -> None:
        """Send likewise, and commit offset 2 in each queue for a group."""
        self._jvm.ask("lag", names, json.dumps([[topic, group, str(count)]]))

    def die(self, names: str, topic: str, group: str) -> None:
        """Send one message that becomes a dead letter of a group, and consume that."""
        self._jvm.ask("die", names, json.dumps([[topic, group]]))

    def exporter(self, names: str) -> dict[str, dict[str, Any]]:
        """Return what rocketmq-exporter makes metrics of: values by metric and labels."""
        return self._jvm.ask("exporter", names, "[]")

    def dashboard(self, names: str, words: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what the pages of RocketMQ Dashboard show: values by page and labels.

        Args:
            words: a topic, a group and a producers' group that are there, and a message's unique
                key and key.
        """
        return self._jvm.ask("dashboard", names, json.dumps([list(words)]))

    def begin(self, names: str, topic: str, word: str) -> None:
        """Send ten messages that begin with a word."""
        self._jvm.ask("begin", names, json.dumps([[topic, word]]))

    def go_on(self, names: str, topic: str, group: str, word: str) -> list[str]:
        """Return ten messages that a group has not consumed yet; then send ten others."""
        return self._jvm.ask("go on", names, json.dumps([[topic, group, word]]))["consumed"]

    def examples(self, names: str, wanted: Sequence[Sequence[object]]) -> dict[str, str]:
        """Run programs of rocketmq-example, all at a time; return what each set of them printed.

        Args:
            wanted: a name, a text, how often it must be printed, and classes in their order.
        """
        lists = [[str(word) for word in each] for each in wanted]
        return self._jvm.ask("examples", names, json.dumps(lists))
