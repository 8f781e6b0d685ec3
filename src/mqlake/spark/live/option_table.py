"""The options of the source "rocketmq" on a running cluster (docs/spark-live.md has this table).

Options that mean the same as on a store directory are taken from there.
"""

from __future__ import annotations

from mqlake.spark.options.parsing import Option, boolean, duration, text, whole
from mqlake.spark.reading import queue_json
from mqlake.spark.reading.limits import EARLIEST, LATEST, limit
from mqlake.spark.source.option_table import SOURCE_OPTIONS

NAME_SERVER = Option(
    "nameServer",
    text,
    None,
    "both",
    "Required. The name servers, `host:port`, with `;` between them. The environment variable "
    "`NAMESRV_ADDR` is used if neither this nor `path` is given.",
    ("namesrvAddr", "rocketmq.namesrvAddr"),
)
RETRY_TIMEOUT = Option(
    "retryTimeout",
    duration,
    "2m",
    "both",
    "How long a request to a broker or name server that does not answer, or is busy, is repeated "
    "before the query fails.",
    ("pullTimeoutMs",),
)

_OF_DIRECTORIES = {option.name: option for option in SOURCE_OPTIONS}

_SAME = (
    "tags",
    "keys",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "columns",
    "includeBody",
    "pushFilters",
)

LIVE_OPTIONS: tuple[Option, ...] = (
    NAME_SERVER,
    Option(
        "subscribe",
        _OF_DIRECTORIES["subscribe"].parse,
        None,
        "both",
        "Topics, with commas between them. Without it, `subscribePattern` and `assign`: all but "
        "RocketMQ's own and those of groups (`%RETRY%…`, `%DLQ%…`).",
        ("topic",),
    ),
    Option(
        "subscribePattern",
        _OF_DIRECTORIES["subscribePattern"].parse,
        None,
        "both",
        "Topics whose whole name matches a regular expression (Python's). Topics of groups match "
        "only an expression that begins with `%`.",
    ),
    Option(
        "assign",
        queue_json.of_brokers_queues,
        None,
        "both",
        'Queues: `{"TopicA": {"broker-a": [0, 1]}}`, or `{"TopicA": [0, 1]}` on all brokers.',
    ),
    Option(
        "startingOffsetsByTimestamp",
        queue_json.of_brokers_timestamps,
        None,
        "both",
        "The same by queue, as `startingOffsets`; others start at the earliest.",
    ),
    Option(
        "startingOffsets",
        limit(EARLIEST, LATEST, offsets=queue_json.of_brokers_offsets),
        None,
        "both",
        '`earliest`, `latest` (streaming), or by queue: `{"TopicA": {"broker-a": {"0": 23}}}`, '
        "where -2 is the earliest and -1 the latest; other queues start at the earliest. The "
        "broker may be left out of a topic that is on one broker. Unset: earliest in batch "
        "queries, latest in streaming ones. A restarted query continues at its checkpoint.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        queue_json.of_brokers_timestamps,
        None,
        "batch",
        "The same by queue; other queues end at the latest.",
    ),
    Option(
        "endingOffsets",
        limit(LATEST, offsets=queue_json.of_brokers_offsets),
        None,
        "batch",
        "`latest`, or by queue, exclusive: as `startingOffsets`, without -2.",
    ),
    Option(
        "failOnDataLoss",
        boolean,
        "true",
        "both",
        "Fail if messages are damaged, deleted or out of the given range, if a topic was created "
        "anew, if a queue is gone or its broker does not answer, and, in a batch query, if a topic "
        "or a queue does not exist. Otherwise such messages are skipped, counted and logged.",
    ),
    Option(
        "minPartitions",
        whole(1),
        None,
        "both",
        "At least so many tasks, about: long queues are split. Unset: one for each queue.",
    ),
    Option(
        "maxRecordsPerPartition",
        whole(1),
        None,
        "both",
        "At most so many queue offsets in a task.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "At most so many queue offsets in a micro-batch, shared among the queues by what each has. "
        "Offsets count, also of messages that `tags` or `keys` leave out.",
    ),
    Option(
        "groupId",
        text,
        None,
        "streaming",
        "A consumer group, whose offsets are committed at the brokers after each micro-batch, so "
        "that `mqadmin consumerProgress` shows the lag. The query itself continues at its "
        "checkpoint. Choose a group without other members.",
    ),
    Option(
        "commitOffsets",
        boolean,
        "true",
        "streaming",
        "Whether the offsets of `groupId` are committed.",
    ),
    Option(
        "pullBatchSize",
        whole(1),
        "1024",
        "both",
        "Messages of one pull at most. Brokers have a limit of their own: 32 by default "
        "(`maxTransferCountOnMessageInMemory`).",
    ),
    RETRY_TIMEOUT,
    *(_OF_DIRECTORIES[name] for name in _SAME),
)
