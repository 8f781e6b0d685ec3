"""Stream from two brokers into a Delta table and back while servers and drivers are killed.

What the brokers' stores have in the end, read as directories, is what the table must have.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

from deltalake import DeltaTable

from mqlake.client import Message
from mqlake.client.blocking import Producer
from mqlake.errors import MqlakeError
from tests.client.servers import create_topic
from tests.peer.java_build import jars
from tests.peer.spark_cluster.driver import COPIES, TOPIC
from tests.peer.spark_cluster.servers import Brokers, Driver, brokers
from tests.query.store import rows as of_directory
from tests.spark.servers import Cluster, cluster

DELTA = Path(__file__).parents[1] / "spark_delta"
VICTIMS = ("worker", "java", "ours", "driver")
QUEUES = 2
"""Queues of each topic on each broker."""
PATIENCE = 400.0
"""Seconds until a driver has committed again, or has ended; it takes ten if nothing else runs."""
_PAUSE = 0.05
"""Seconds between two sends."""

Row = tuple[str, int, int, str, bytes]
"""Broker, queue, queue offset, key and body of a message."""


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        kills: by what was killed.
        acknowledged: messages that a broker has acknowledged.
        stored: messages that the stores have.
        commits: versions of the table.
        repeated: copies that were sent again.
        lost, doubled, wrong: messages that the table lacks, has twice, or has with other values.
        not_sent_back: keys that no copy has.
    """

    kills: Counter[str] = field(default_factory=Counter[str])
    acknowledged: int = 0
    stored: int = 0
    commits: int = 0
    repeated: int = 0
    lost: list[object] = field(default_factory=list[object])
    doubled: list[object] = field(default_factory=list[object])
    wrong: list[object] = field(default_factory=list[object])
    not_sent_back: list[str] = field(default_factory=list[str])

    @property
    def violations(self) -> int:
        found = (self.lost, self.doubled, self.wrong, self.not_sent_back)
        return sum(map(len, found))


class Running:
    """A cluster of Spark, brokers, and the driver of the moment."""

    def __init__(self, home: Path, spark: Cluster, running: Brokers, seed: int) -> None:
        self.outcome = Outcome()
        self._home, self._spark, self._brokers = home, spark, running
        self._words = (spark.master, running.names, str(jars(DELTA)))
        self._chance = random.Random(seed)
        self._driver: Driver | None = None

    def begin(self, mode: str) -> Driver:
        """Start a driver."""
        self._driver = Driver(self._home, mode, *self._words)
        return self._driver

    def kill(self, victim: str) -> None:
        """Kill something, and put the same in its place."""
        if victim == "worker":
            self._spark.kill_worker()
            self._spark.add_worker()
        elif victim == "java":
            self._brokers.kill_java()
        elif victim == "ours":
            self._brokers.kill_ours()
        elif self._driver is not None:
            self._driver.kill()
            self.begin("follow")
        self.outcome.kills[victim] += 1

    def follow(self, victims: tuple[str, ...]) -> None:
        """Stream into the table; kill each victim at some moment between two commits."""
        self.begin("follow")
        self._wait_for_commits(1)
        for victim in victims:
            time.sleep(self._chance.uniform(0, 1))
            self.kill(victim)
            self._wait_for_commits(1)

    def finish(self, victims: tuple[str, ...]) -> None:
        """End the driver as a kill does, stream what is left, and then all rows back.

        Each victim is killed at some moment after one more micro-batch of copies has begun.
        """
        assert self._driver is not None
        self._driver.kill()
        driver = self.begin("finish")
        for number, victim in enumerate(victims):
            self._wait_for_batch(number)
            time.sleep(self._chance.uniform(0, 1))
            self.kill(victim)
        self._wait(lambda: driver.has_ended)
        assert driver.succeeded, driver.said

    def close(self) -> None:
        if self._driver is not None:
            self._driver.kill()

    @property
    def commits(self) -> int:
        """The versions of the table."""
        return len(list((self._home / "table" / "_delta_log").glob("*.json")))

    def _wait_for_commits(self, more: int) -> None:
        wanted = self.commits + more

        def is_there() -> bool:
            assert self._driver is not None
            self._driver.check()
            return self.commits >= wanted

        self._wait(is_there)

    def _wait_for_batch(self, number: int) -> None:
        """Wait until the stream back has planned a micro-batch."""
        planned = self._home / "from-delta" / "offsets" / str(number)

        def is_there() -> bool:
            assert self._driver is not None
            self._driver.check()
            return planned.exists()

        self._wait(is_there)

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self._driver and self._driver.said
            time.sleep(0.2)


def run(
    home: Path,
    victims: tuple[str, ...],
    victims_back: tuple[str, ...],
    seed: int,
    workers: int = 2,
) -> Outcome:
    """Kill victims one after another.

    Args:
        home: a directory for everything.
        victims: are killed on the way into the table.
        victims_back: on the way back, none of them a driver.

    Raises:
        JavaMissingError: Java's broker or Delta Lake's jars cannot be fetched.
        AssertionError: a driver failed, or did not get on.
    """
    with cluster(home / "spark", workers) as spark, brokers(home) as made:
        for address in made.addresses:
            for topic in (TOPIC, COPIES):
                asyncio.run(create_topic(address, topic, QUEUES))
        running = Running(home, spark, made, seed)
        try:
            with _sending(made.names) as acknowledged:
                running.follow(victims)
            running.finish(victims_back)
        finally:
            running.close()
        return _judged(running.outcome, home / "table", made, acknowledged, running.commits)


@contextmanager
def _sending(names: str) -> Iterator[set[str]]:
    """Send messages until the block ends; yield the keys of those that are acknowledged."""
    acknowledged: set[str] = set()
    done = Event()

    def send() -> None:
        with Producer(names) as producer:
            for number in count():
                if done.wait(_PAUSE):
                    return
                key = f"order-{number}"
                body = f"{key} ".encode() * (number % 30 + 1)
                try:
                    producer.send(Message(topic=TOPIC, body=body, keys=key, tags="ab"[number % 2]))
                except MqlakeError:
                    continue  # it may be stored all the same
                acknowledged.add(key)

    sender = Thread(target=send)
    sender.start()
    try:
        yield acknowledged
    finally:
        done.set()
        sender.join()


def _judged(
    outcome: Outcome, table: Path, made: Brokers, acknowledged: set[str], commits: int
) -> Outcome:
    rows = DeltaTable(table).to_pyarrow_table().to_pylist()
    found = Counter(_row(row, row["brokerName"]) for row in rows)
    truth = set(_stored(made, TOPIC))
    places = {row[:3] for row in truth}
    copies = Counter(row[3] for row in _stored(made, COPIES))
    outcome.acknowledged, outcome.stored, outcome.commits = len(acknowledged), len(truth), commits
    outcome.lost = [row[:4] for row in truth - found.keys()]
    outcome.lost += sorted(acknowledged - {row[3] for row in found})
    outcome.doubled = [row[:4] for row, times in found.items() if times > 1]
    outcome.doubled += [row[:4] for row in found.keys() - truth if row[:3] not in places]
    outcome.wrong = [row[:4] for row in found.keys() - truth if row[:3] in places]
    outcome.not_sent_back = sorted({row[3] for row in found} - copies.keys())
    outcome.repeated = copies.total() - len(found)
    return outcome


def _stored(made: Brokers, topic: str) -> list[Row]:
    """Return the messages of a topic that the brokers' directories have."""
    columns = "queueId,queueOffset,physicalOffset,keys,body"
    return [
        _row(row, name)
        for name, store in made.stores.items()
        for row in of_directory.batch_rows(
            store, subscribe=topic, columns=columns, failOnDataLoss=False
        )
    ]


def _row(row: dict[str, Any], broker: str) -> Row:
    return broker, row["queueId"], row["queueOffset"], row["keys"][0], row["body"]
