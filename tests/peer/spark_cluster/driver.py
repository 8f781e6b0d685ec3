"""A driver of its own: streams a topic into a Delta table, or the table back into a topic.

    python -m tests.peer.spark_cluster.driver follow|finish MASTER NAMES JARS DIRECTORY

`follow` runs until it is killed. `finish` reads what is left, and sends all rows back.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark.servers import ROOT, quick_start
from tests.spark.small_session import SMALL

TOPIC, COPIES = "Orders", "Copies"
COLUMNS = "topic,brokerName,queueId,queueOffset,keys,tags,uniqKey,body"
FILES = 8
"""Files of the table that are sent back in a micro-batch."""
INTERVAL = "4 seconds"
"""Between the begins of two micro-batches into the table: otherwise they run without a pause, and
leave many small files, which are all sent back."""


def main(mode: str, master: str, names: str, jars: str, directory: str) -> None:
    spark, home = _session(master, jars), Path(directory)
    table = str(home / "table")
    orders = spark.readStream.format("rocketmq").option("nameServer", names)
    orders = orders.option("subscribe", TOPIC).option("startingOffsets", "earliest")
    rows = orders.option("columns", COLUMNS).load()
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(home / "to-delta"))
    if mode == "follow":
        writer.trigger(processingTime=INTERVAL).start(table).awaitTermination()
        return
    writer.trigger(availableNow=True).start(table).awaitTermination()

    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", FILES).load(table)
    sink = rows.select("body", "keys", "tags", "uniqKey").writeStream.format("rocketmq")
    sink = sink.option("nameServer", names).option("topic", COPIES)
    sink = sink.option("checkpointLocation", str(home / "from-delta"))
    sink.trigger(availableNow=True).start().awaitTermination()


def _session(master: str, jars: str) -> SparkSession:
    settings = {
        **SMALL,
        "spark.jars": ",".join(map(str, sorted(Path(jars).iterdir()))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": quick_start(),
        "spark.executor.extraJavaOptions": quick_start(),
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }
    builder: Any = SparkSession.builder
    return builder.master(master).config(map=settings).getOrCreate()


if __name__ == "__main__":
    main(*sys.argv[1:])
