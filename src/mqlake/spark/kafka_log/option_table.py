"""The options of the source "kafka-log" (docs/kafka-log-source.md has this table).

Names, defaults and precedence are those of Spark's Kafka source (`KafkaSourceProvider`).
"""

from __future__ import annotations

from mqlake.kafka.isolation import Isolation
from mqlake.spark.options.parsing import (
    Option,
    boolean,
    choice,
    duration,
    pattern,
    text,
    whole,
    words,
)
from mqlake.spark.reading import queue_json
from mqlake.spark.reading.limits import EARLIEST, LATEST, limit

SOURCE_OPTIONS: tuple[Option, ...] = (
    Option(
        "path",
        text,
        None,
        "both",
        "Required. The log directory (Kafka's `log.dir`), or the URL of one (`s3://…`).",
    ),
    Option(
        "subscribe",
        words(","),
        None,
        "both",
        "Topics, with commas between them. Without it, `subscribePattern` and `assign`: all but "
        "Kafka's own.",
    ),
    Option(
        "subscribePattern",
        pattern,
        None,
        "both",
        "Topics whose whole name matches a regular expression (Python's), but for Kafka's own.",
    ),
    Option("assign", queue_json.queues, None, "both", 'Partitions: `{"topicA": [0, 1]}`.'),
    Option(
        "startingTimestamp",
        whole(),
        None,
        "both",
        "Time (ms): each partition starts at its first record of then or later.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        queue_json.timestamps,
        None,
        "both",
        'The same by partition: `{"topicA": {"0": 1700000000000}}`; others start at the earliest.',
    ),
    Option(
        "startingOffsets",
        limit(EARLIEST, LATEST),
        None,
        "both",
        '`earliest`, `latest` (streaming), or by partition: `{"topicA": {"0": 23, "1": -2}}`, '
        "where -2 is the earliest and -1 the latest; other partitions start at the earliest. "
        "Unset: earliest in batch queries, latest in streaming ones. A restarted query goes on "
        "where it was.",
    ),
    Option(
        "endingTimestamp",
        whole(),
        None,
        "batch",
        "Time (ms): each partition ends before its first record of then or later.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        queue_json.timestamps,
        None,
        "batch",
        "The same by partition; other partitions end at the latest.",
    ),
    Option(
        "endingOffsets",
        limit(LATEST),
        None,
        "batch",
        "`latest`, or by partition, exclusive: as `startingOffsets`, without -2.",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        choice("error", LATEST),
        "error",
        "both",
        "What to do where a partition has no record from the starting time on: fail, or start at "
        "the latest.",
    ),
    Option("includeHeaders", boolean, "false", "both", "Whether the column `headers` is there."),
    Option(
        "isolation.level",
        choice(*Isolation),
        Isolation.READ_UNCOMMITTED,
        "both",
        "`read_committed` leaves out aborted transactions, and ends before the first open one.",
        ("kafka.isolation.level",),
    ),
    Option(
        "failOnDataLoss",
        boolean,
        "true",
        "both",
        "Fail where records are damaged, deleted or out of the given range; else skip and log "
        "them.",
    ),
    Option(
        "minPartitions",
        whole(1),
        None,
        "both",
        "At least so many tasks, about. Unset: one a core of the driver's machine, more above "
        "1 GiB each, fewer below 4 MiB each.",
    ),
    Option("maxRecordsPerPartition", whole(1), None, "both", "At most so many offsets a task."),
    Option(
        "maxOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "At most so many offsets a micro-batch, shared among partitions by what each has.",
    ),
    Option(
        "minOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "Wait for so many offsets, but no longer than `maxTriggerDelay`.",
    ),
    Option("maxTriggerDelay", duration, "15m", "streaming", "See `minOffsetsPerTrigger`."),
    Option(
        "columns",
        words(","),
        None,
        "both",
        "Columns to make, with commas between them. Spark does not say which ones a query uses, so "
        "this is what saves the work for the others. Unset: all that `includeHeaders` leaves.",
    ),
    Option(
        "pushFilters",
        choice("auto", "true", "false"),
        "auto",
        "batch",
        "Whether filters that Spark pushes down narrow what is read. `auto`: where that is safe, "
        "which it is not on Spark 4.2 and 4.3; `true`: also there, for a DataFrame that one query "
        "uses once.",
    ),
)

NO_MEANING = ("kafka.", "kafkaconsumer.", "fetchoffset.", "groupidprefix")
"""Beginnings, in lower case, of options of Spark's Kafka source that are about a broker."""
