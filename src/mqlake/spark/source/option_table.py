"""The options of the source "rocketmq" (docs/spark-source.md has this table).

Names, defaults and precedence are those of Spark's Kafka source (`KafkaSourceProvider`) where it
has them; the aliases are rocketmq-spark's (`RocketMQConf`).
"""

from __future__ import annotations

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
from mqlake.spark.source.position import parse_position
from mqlake.storage.object_stores import S3_SETTINGS

SOURCE_OPTIONS: tuple[Option, ...] = (
    Option(
        "path",
        text,
        None,
        "both",
        "Required. The store directory, or the URL of one (`s3://…`, `hdfs://…`, `gs://…`); "
        "several with commas between them, or a pattern such as `/data/*/store`. Give `nameServer` "
        "instead to read a running cluster (spark-live.md).",
    ),
    Option(
        "paths",
        text,
        None,
        "both",
        'The same as a list in JSON, as `load(["/data/a", "/data/b"])` gives it.',
    ),
    Option(
        "archive",
        text,
        None,
        "both",
        "The archive of the store at `path`, a directory or URL: both are read as one log "
        "(archive.md). Without it, `path` may be an archive itself.",
    ),
    Option(
        "table",
        text,
        None,
        "batch",
        "A lake table that `mqlake follow` keeps of the store: its rows, and those of the log that "
        "it does not have yet (union-read.md). `path` may be left out then.",
    ),
    Option(
        "catalog",
        text,
        None,
        "batch",
        "URI of the Iceberg catalog in which `table` is a name. Unset: `table` is a directory.",
    ),
    Option("catalogName", text, "default", "batch", "Name of that catalog, as PyIceberg has it."),
    Option(
        "subscribe",
        words(","),
        None,
        "both",
        "Topics, with commas between them. Without it, `subscribePattern` and `assign`: all.",
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
        "Messages with one of these tags: `TagA \\|\\| TagB`; `*` for all.",
        ("subExpression",),
    ),
    Option(
        "keys",
        words(" "),
        None,
        "both",
        "Messages with one of these as a key or as the unique key; spaces between them.",
    ),
    Option(
        "startingPosition",
        parse_position,
        None,
        "streaming",
        'Where another query is, as its progress has it: `{"physicalOffset": 4096}`. It comes '
        "before the other starting options.",
    ),
    Option(
        "startingTimestamp",
        whole(),
        None,
        "both",
        "Store time (ms): each queue starts at its first message stored then or later.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        queue_json.timestamps,
        None,
        "both",
        'The same by queue: `{"TopicA": {"0": 1700000000000}}`; others start at the earliest.',
    ),
    Option(
        "startingOffsets",
        limit(EARLIEST, LATEST),
        None,
        "both",
        '`earliest`, `latest` (streaming), or by queue: `{"TopicA": {"0": 23, "1": -2}}`, where -2 '
        "is the earliest and -1 the latest; other queues start at the earliest. Unset: earliest in "
        "batch queries, latest in streaming ones. A restarted query goes on where it was.",
    ),
    Option(
        "endingTimestamp",
        whole(),
        None,
        "batch",
        "Store time (ms): each queue ends before its first message stored then or later.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        queue_json.timestamps,
        None,
        "batch",
        "The same by queue; other queues end at the latest.",
    ),
    Option(
        "endingOffsets",
        limit(LATEST),
        None,
        "batch",
        "`latest`, or by queue, exclusive: as `startingOffsets`, without -2.",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        choice("error", LATEST),
        "error",
        "both",
        "What to do where a queue has no message from the starting time on: fail, or start at "
        "the latest. Queries that name no topics start at the latest.",
    ),
    Option(
        "failOnDataLoss",
        boolean,
        "true",
        "both",
        "Fail where messages are damaged, deleted or out of the given range, and, in a batch "
        "query, where a topic or a queue is not there; else skip, count and log them.",
    ),
    Option(
        "failOnSubscriptionChange",
        boolean,
        "true",
        "streaming",
        "Fail if the checkpoint was written for other topics, queues, tags or keys; else continue "
        "from the checkpoint, without earlier messages that were not subscribed to.",
    ),
    Option(
        "minPartitions",
        whole(1),
        None,
        "both",
        "At least so many tasks, about. Unset: one a core of the driver's machine, more above "
        "1 GiB each, fewer below 4 MiB each.",
    ),
    Option(
        "maxRecordsPerPartition",
        whole(1),
        None,
        "both",
        "At most so many messages a task. The driver counts them, so it reads the log once.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "At most so many messages a micro-batch.",
    ),
    Option(
        "minOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "Wait for so many messages, but no longer than `maxTriggerDelay`.",
    ),
    Option("maxTriggerDelay", duration, "15m", "streaming", "See `minOffsetsPerTrigger`."),
    Option(
        "columns",
        words(","),
        None,
        "both",
        "Columns to make, with commas between them. Spark does not say which ones a query uses, so "
        "this is what saves the work for the others. Unset: all.",
    ),
    Option("includeBody", boolean, "true", "both", "Whether the column `body` is there."),
    Option(
        "brokerName",
        text,
        None,
        "both",
        "What the column `brokerName` says of one store, which does not know. Unset: null. Of "
        'several stores, see "Several stores".',
    ),
    Option(
        "accessPath",
        choice("auto", "scan", "queues", "index", "points"),
        "auto",
        "both",
        "How messages are looked for: the cheapest way, or this one, where it is possible.",
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
    Option("pullBatchSize", whole(), None, "both", "For running clusters; means nothing here."),
    Option("pullTimeoutMs", whole(), None, "both", "For running clusters; means nothing here."),
    *(Option(name, text, None, "both", meaning) for name, meaning in S3_SETTINGS.items()),
)
