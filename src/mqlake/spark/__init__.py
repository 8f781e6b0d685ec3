"""Run mqlake's jobs on Spark: embedded on this machine, on a cluster, or over Spark Connect.

`open_session` opens any of these (docs/spark.md); `messages` returns a store as a DataFrame. Spark
finds the formats `rocketmq` and `kafka-log` by itself; register the classes only under other names,
and in tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.spark.bodies.frame import decode as decode
    from mqlake.spark.connect import ConnectEngine as ConnectEngine
    from mqlake.spark.data_source import RocketMQDataSource as RocketMQDataSource
    from mqlake.spark.dataframe import messages as messages
    from mqlake.spark.engine import SparkEngine as SparkEngine
    from mqlake.spark.functions.register import register as register
    from mqlake.spark.job_metrics import JobMetrics as JobMetrics
    from mqlake.spark.kafka_log.data_source import KafkaLogDataSource as KafkaLogDataSource
    from mqlake.spark.query_metrics import QueryMetrics as QueryMetrics
    from mqlake.spark.reading.pruned import pruned as pruned
    from mqlake.spark.session import Session as Session
    from mqlake.spark.session import open_session as open_session
    from mqlake.spark.waiting import progress_lines as progress_lines
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "decode": "bodies.frame",
            "ConnectEngine": "connect",
            "messages": "dataframe",
            "SparkEngine": "engine",
            "progress_lines": "waiting",
            "JobMetrics": "job_metrics",
            "QueryMetrics": "query_metrics",
            "pruned": "reading.pruned",
            "register": "functions.register",
            "KafkaLogDataSource": "kafka_log.data_source",
            "Session": "session",
            "open_session": "session",
            "RocketMQDataSource": "data_source",
        },
    )
