"""The options of the source "rocketmq" (docs/spark-source.md has this table).

Names, defaults and precedence are those of Spark's Kafka source (`KafkaSourceProvider`) where it
has them; the aliases are rocketmq-spark's (`RocketMQConf`).
"""

from __future__ import annotations

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
from mqlake.query.store.position import parse_position

SOURCE_OPTIONS: tuple[Option, ...] = (
    Option(
        "path",
        text,
        None,
        "both",
        "Required, unless `table` is set. The store directory or its URL (`s3://…`, `hdfs://…`, "
        "`gs://…`). Several are separated by commas, or match a pattern such as `/data/*/store`. "
        "To read a running cluster, give `nameServer` instead (spark-live.md).",
    ),
    Option(
        "paths",
        text,
        None,
        "both",
        'Several paths as a JSON list; `load(["/data/a", "/data/b"])` sets it.',
    ),
    Option(
        "archive",
        text,
        None,
        "both",
        "The archive of the store at `path`, a directory or URL: both are read as one log "
        "(archive.md). An archive alone is given as `path`.",
    ),
    Option(
        "table",
        text,
        None,
        "batch",
        "A lake table that `mqlake follow` writes from the store. The query returns its rows, and "
        "the messages of the log that are not in it yet (union-read.md). `path` is optional then.",
    ),
    Option(
        "catalog",
        text,
        None,
        "batch",
        "URI of the Iceberg catalog in which `table` is a name. Unset: `table` is a directory.",
    ),
    Option("catalogName", text, "default", "batch", "PyIceberg's name for that catalog."),
    Option(
        "subscribe",
        words(","),
        None,
        "both",
        "Topics, separated by commas. Without `subscribe`, `subscribePattern` and `assign`: all "
        "topics.",
        ("topic",),
    ),
    Option(
        "subscribePattern",
        pattern,
        None,
        "both",
        "Topics whose whole name matches a regular expression (Python's).",
    ),
    Option("assign", queue_json.queues, None, "both", 'Queues: `{"TopicA": [0, 1]}`.'),
    Option(
        "tags",
        words("||"),
        None,
        "both",
        "Only messages with one of these tags: `TagA \\|\\| TagB`; `*` for all.",
        ("subExpression",),
    ),
    Option(
        "keys",
        words(" "),
        None,
        "both",
        "Only messages with one of these keys or unique keys, separated by spaces.",
    ),
    Option(
        "systemTopics",
        boolean,
        "true",
        "both",
        "Whether a query that selects no topics reads RocketMQ's own, too: half messages, delayed "
        "messages before their delivery, and others. Topics of groups (`%RETRY%…`, `%DLQ%…`) are "
        "read in any case.",
    ),
    Option(
        "startingPosition",
        parse_position,
        None,
        "streaming",
        'A position from the progress of another query: `{"physicalOffset": 4096}`. It takes '
        "precedence over the other starting options.",
    ),
    Option(
        "startingTimestamp",
        milliseconds,
        None,
        "both",
        "Store time (ms): each queue starts at its first message stored at or after this time.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        queue_json.timestamps,
        None,
        "both",
        'Store times (ms) by queue: `{"TopicA": {"0": 1700000000000}}`. Other queues start at '
        "the earliest offset.",
    ),
    Option(
        "startingOffsets",
        limit(EARLIEST, LATEST),
        None,
        "both",
        '`earliest`, `latest` (streaming), or by queue: `{"TopicA": {"0": 23, "1": -2}}`, with -2 '
        "for the earliest and -1 (streaming) for the latest offset. Other queues start at "
        "the earliest. Unset: earliest in batch queries, latest in streaming queries. A restarted "
        "query continues at its checkpoint.",
    ),
    Option(
        "endingTimestamp",
        milliseconds,
        None,
        "batch",
        "Store time (ms): each queue ends before its first message stored at or after this time.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        queue_json.timestamps,
        None,
        "batch",
        "Store times (ms) by queue. Other queues end at the latest offset.",
    ),
    Option(
        "endingOffsets",
        limit(LATEST),
        None,
        "batch",
        "`latest`, or exclusive offsets by queue, in the form of `startingOffsets`, without -2.",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        choice("error", LATEST),
        "error",
        "both",
        "If a queue has no message at or after the starting time: fail (`error`), or start this "
        "queue at the latest offset (`latest`). A query that names no topics or queues never fails "
        "because of this: it starts such a queue at the latest offset.",
    ),
    Option(
        "failOnDataLoss",
        boolean,
        "true",
        "both",
        "Fail if messages are damaged or deleted, if a given offset is outside the queue's "
        "range, and, in a batch query, if a topic or queue does not exist. With `false`, skip, "
        "count and log them.",
    ),
    Option(
        "failOnSubscriptionChange",
        boolean,
        "true",
        "streaming",
        "Fail if the checkpoint was written for other topics, queues, tags or keys. With `false`, "
        "continue at the checkpoint, without earlier messages that were not subscribed to.",
    ),
    MIN_PARTITIONS,
    Option(
        "maxRecordsPerPartition",
        whole(1),
        None,
        "both",
        "The maximum number of messages in a task. The driver reads the log once to count them.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "The maximum number of messages in a micro-batch.",
    ),
    Option(
        "maxBytesPerTrigger",
        whole(1),
        None,
        "streaming",
        "The maximum number of bytes of each store's log in a micro-batch, approximately.",
    ),
    Option(
        "minOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "Wait for this many messages, but no longer than `maxTriggerDelay`.",
    ),
    MAX_TRIGGER_DELAY,
    Option(
        "columns",
        words(","),
        None,
        "both",
        "Columns to build, separated by commas. Spark does not tell a source which columns a "
        "query uses, so this option avoids building the others. Unset: all.",
    ),
    Option("includeBody", boolean, "true", "both", "Whether rows have the column `body`."),
    Option(
        "decompress",
        boolean,
        "true",
        "both",
        "Whether rows are messages as consumers receive them: bodies that producers compressed are "
        "decompressed, and the messages of an inner batch are rows. `false`: rows are records as "
        "stored.",
    ),
    Option(
        "brokerName",
        text,
        None,
        "both",
        "The value of the column `brokerName` if one store is read. Unset: null, because the name "
        'of a single store is not looked up. If several are read, see "Several stores".',
    ),
    Option(
        "accessPath",
        choice("auto", "scan", "queues", "index", "points"),
        "auto",
        "batch",
        "How messages are found. `auto`: the way that reads the fewest bytes. The others are "
        'described under "What is read".',
    ),
    PUSH_FILTERS,
    Option("pullBatchSize", whole(), None, "both", "For running clusters; ignored here."),
    Option("pullTimeoutMs", whole(), None, "both", "For running clusters; ignored here."),
    *OBJECT_STORES,
)
