"""A large store that Java wrote: read by Spark, verified, and rebuilt byte for byte."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.derived import DifferenceError, compare

from mqlake.jobs.engine import Engine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from tests.peer.rocketmq_store import start_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS, QUEUES, BODY = 5, 4, 200
WAITING = 1000
"""Puts that Java's store has not answered yet."""

Tell = Callable[[str], object]

_SUMS = (
    "count(*) AS count",
    "sum(number) AS numbers",
    "sum(number * number % 1000003) AS squares",
    "sum(queueOffset) AS offsets",
    "count(DISTINCT queueId) AS queues",
    "count_if(size <= 0 OR length(body) != {body}) AS odd",
    "count_if((crc32(body) & 2147483647) != bodyCrc) AS damaged",
    "count(DISTINCT bodyCrc) AS bodies",
)


def write(directory: Path, messages: int) -> None:
    """Let RocketMQ's own store write messages to `directory/store`, with files of default sizes.

    Message `n` has the key `key-n`; they go to the topics in turn, and within these to the queues.

    Raises:
        JavaMissingError: it cannot be built.
    """
    jvm = start_jvm(directory / "java.stderr", "1g")
    try:
        jvm.ask("open", directory / "store", "{}")
        load = {"messages": messages, "body": BODY, "topics": TOPICS, "queues": QUEUES}
        jvm.ask("put-load", json.dumps(load | {"waiting": WAITING}))
        jvm.ask("close")
    finally:
        jvm.close()


def expected(messages: int) -> dict[str, dict[str, int]]:
    """Return the sums of each topic, by its name."""
    return {f"topic-{topic}": _sums(topic, messages) for topic in range(TOPICS)}


def _sums(topic: int, messages: int) -> dict[str, int]:
    numbers = [range(topic * QUEUES + queue, messages, TOPICS * QUEUES) for queue in range(QUEUES)]
    return {
        "count": sum(map(len, numbers)),
        "numbers": sum(map(sum, numbers)),
        "squares": sum(number * number % 1_000_003 for each in numbers for number in each),
        "offsets": sum(sum(range(len(each))) for each in numbers),
        "queues": sum(bool(each) for each in numbers),
        "odd": 0,
        "damaged": 0,
        "bodies": 1,
    }


def found(spark: SparkSession, store: Path) -> dict[str, dict[str, int]]:
    """Return the sums of each topic, by its name, as Spark reads them."""
    from mqlake.spark.data_source import RocketMQDataSource

    spark.dataSource.register(RocketMQDataSource)
    rows: Any = spark.read.format("rocketmq").load(str(store))
    sums = ", ".join(_SUMS).format(body=BODY)
    rows.selectExpr("*", "bigint(substr(keys[0], 5)) AS number").createOrReplaceTempView("java")
    query = f"SELECT topic, {sums} FROM java GROUP BY topic"
    return {row.pop("topic"): row for row in (each.asDict() for each in spark.sql(query).collect())}


def faults(
    spark: SparkSession, engine: Engine, directory: Path, messages: int, tell: Tell
) -> Iterator[str]:
    """Read, verify and rebuild `directory/store`; yield what was wrong."""
    store, rebuilt = directory / "store", directory / "rebuilt"
    with _timed("read by Spark", messages, tell):
        sums = found(spark, store)
    if sums != expected(messages):
        yield f"read by Spark: {sums}, not {expected(messages)}"
    with _timed("verified", messages, tell):
        yield from faults_of_verify(store, engine, messages)
    with _timed("rebuilt", messages, tell):
        rebuild(store, engine, out=rebuilt)
    yield from faults_of_rebuild(store, rebuilt, tell)


def faults_of_verify(store: Path, engine: Engine, messages: int) -> Iterator[str]:
    """Yield what a verification finds, or that it finds other records than these."""
    report = verify(store, engine)
    if not report.ok or report.records != messages:
        yield f"verified: {report}"


def faults_of_rebuild(store: Path, rebuilt: Path, tell: Tell) -> Iterator[str]:
    """Yield a difference between the files of RocketMQ and those that were rebuilt."""
    try:
        tell(compare(store, rebuilt))
    except DifferenceError as error:
        yield f"rebuilt: {error}"


@contextmanager
def _timed(what: str, messages: int, tell: Tell) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    seconds = time.perf_counter() - begin
    tell(f"{what}: {seconds:.1f} s, {messages / seconds:,.0f} messages/s")
