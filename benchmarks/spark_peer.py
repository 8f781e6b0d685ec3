"""Spark with its official Kafka connector, and a broker for it: for what is measured beside them.

The jars come from the Maven registry (`spark_kafka/pom.xml`), the broker from `tests.peer`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.peer.java_build import jars
from tests.peer.kafka_broker import Broker

from mqlake.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCE = Path(__file__).parent / "spark_kafka"
CORES = 2


@contextmanager
def open_spark(directory: Path, settings: dict[str, str] | None = None) -> Iterator[SparkSession]:
    """Open a Spark session as users have it, with the connector; temporary files in `directory`.

    Raises:
        JavaMissingError: the connector cannot be fetched.
    """
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = {
        "spark.jars": ",".join(map(str, sorted(jars(SOURCE).glob("*.jar")))),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.local.dir": str(directory / "spark-local"),
        "spark.sql.warehouse.dir": str(directory / "spark-warehouse"),
    }
    builder = SparkSession.builder.master(f"local[{CORES}]")
    for name, value in (options | (settings or {})).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def open_broker(directory: Path) -> Iterator[Broker]:
    """Run a broker with its log in `directory`.

    Raises:
        JavaMissingError: no Kafka can be fetched.
    """
    directory.mkdir(parents=True)
    broker = Broker(directory)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def create_topic(spark: SparkSession, broker: Broker, topic: str, partitions: int) -> None:
    """Make a topic, with the Kafka client that the connector brings along."""
    jvm: Any = spark.sparkContext._jvm
    settings = jvm.java.util.Properties()
    settings.put("bootstrap.servers", broker.bootstrap)
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
    new = jvm.org.apache.kafka.clients.admin.NewTopic
    topics = jvm.java.util.List.of(
        new(topic, jvm.java.util.Optional.of(partitions), jvm.java.util.Optional.empty())
    )
    admin.createTopics(topics).all().get()
    admin.close()


def from_kafka(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    """Return all records of a topic, through the connector."""
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )


def to_kafka(frame: DataFrame, broker: Broker, topic: str) -> None:
    """Send rows with `key` and `value` to a topic."""
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.option("topic", topic).save()


def noop(frame: DataFrame) -> float:
    """Make all rows of a frame, and drop them; return the seconds it took."""
    begin = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin
