"""The options of the source "kafka-log" (docs/kafka-log-source.md has this table).

Names, defaults and precedence are those of Spark's Kafka source (`KafkaSourceProvider`).
"""

from __future__ import annotations

from mqlake.kafka.isolation import Isolation
from mqlake.query.reading import queue_json
from mqlake.query.reading.limits import EARLIEST, LATEST, limit
from mqlake.query.reading.parsing import (
    Option,
    boolean,
    choice,
    milliseconds,
    pattern,
    text,
    whole,
    words,
)
from mqlake.query.reading.query_options import (
    MAX_TRIGGER_DELAY,
    MIN_PARTITIONS,
    OBJECT_STORES,
    PUSH_FILTERS,
)

SOURCE_OPTIONS: tuple[Option, ...] = (
    Option(
        "path",
        text,
        None,
        "both",
        "Required. The log directory (Kafka's `log.dir`) or its URL (`s3://…`).",
    ),
    Option(
        "subscribe",
        words(","),
        None,
        "both",
        "Topics, separated by commas. Without `subscribe`, `subscribePattern` and `assign`: all "
        "topics except Kafka's own.",
    ),
    Option(
        "subscribePattern",
        pattern,
        None,
        "both",
        "Topics whose whole name matches a regular expression (Python's), except Kafka's own.",
    ),
    Option("assign", queue_json.queues, None, "both", 'Partitions: `{"topicA": [0, 1]}`.'),
    Option(
        "startingTimestamp",
        milliseconds,
        None,
        "both",
        "Time (ms): each partition starts at its first record with this or a later timestamp.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        queue_json.timestamps,
        None,
        "both",
        'Times (ms) by partition: `{"topicA": {"0": 1700000000000}}`. Other partitions start at '
        "the earliest offset.",
    ),
    Option(
        "startingOffsets",
        limit(EARLIEST, LATEST),
        None,
        "both",
        '`earliest`, `latest` (streaming), or by partition: `{"topicA": {"0": 23, "1": -2}}`, '
        "with -2 for the earliest and -1 (streaming) for the latest offset. Other partitions start "
        "at the earliest. Unset: earliest in batch queries, latest in streaming queries. A "
        "restarted query continues at its checkpoint.",
    ),
    Option(
        "endingTimestamp",
        milliseconds,
        None,
        "batch",
        "Time (ms): each partition ends before its first record with this or a later timestamp.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        queue_json.timestamps,
        None,
        "batch",
        "Times (ms) by partition. Other partitions end at the latest offset.",
    ),
    Option(
        "endingOffsets",
        limit(LATEST),
        None,
        "batch",
        "`latest`, or exclusive offsets by partition, in the form of `startingOffsets`, without "
        "-2.",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        choice("error", LATEST),
        "error",
        "both",
        "If a partition has no record at or after the starting time: fail (`error`), or start at "
        "the latest offset (`latest`).",
    ),
    Option(
        "includeHeaders",
        boolean,
        "false",
        "both",
        "Whether rows have the column `headers`, if `columns` is unset.",
    ),
    Option(
        "isolation.level",
        choice(*Isolation),
        Isolation.READ_UNCOMMITTED,
        "both",
        "`read_committed` skips aborted transactions, and ends before the first open one.",
        ("kafka.isolation.level",),
    ),
    Option(
        "failOnDataLoss",
        boolean,
        "true",
        "both",
        "Fail if records are damaged or deleted, or if a given offset is outside the partition's "
        "range. With `false`, log this and continue without the records.",
    ),
    MIN_PARTITIONS,
    Option(
        "maxRecordsPerPartition", whole(1), None, "both", "The maximum number of offsets in a task."
    ),
    Option(
        "maxOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "The maximum number of offsets in a micro-batch, shared among the partitions in "
        "proportion to their backlogs.",
    ),
    Option(
        "minOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "Wait for this many offsets, but no longer than `maxTriggerDelay`.",
    ),
    MAX_TRIGGER_DELAY,
    Option(
        "columns",
        words(","),
        None,
        "both",
        "Columns to build, separated by commas. Spark does not tell a source which columns a "
        "query uses, so this option avoids building the others. Unset: all, `headers` only "
        "with `includeHeaders`.",
    ),
    PUSH_FILTERS,
    *OBJECT_STORES,
)

NO_MEANING = ("kafka.", "kafkaconsumer.", "fetchoffset.", "groupidprefix")
"""Beginnings, in lower case, of options of Spark's Kafka source that are about a broker."""
