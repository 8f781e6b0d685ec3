"""The options of the sink "rocketmq" (docs/spark-sink.md has this table).

`topic` is that of Spark's Kafka sink; settings of the store are named as in `broker.conf`.
"""

from __future__ import annotations

from mqlake.query.reading.parsing import Option, boolean, text, whole

SINK_OPTIONS: tuple[Option, ...] = (
    Option(
        "path",
        text,
        None,
        "both",
        "Required. The store directory: a new one, or a store that is closed.",
    ),
    Option(
        "topic",
        text,
        None,
        "both",
        "The topic of all messages; takes precedence over the column `topic`.",
    ),
    Option(
        "defaultTopicQueueNums",
        whole(1),
        "4",
        "both",
        "The number of queues over which messages without a `queueId` are distributed in turn.",
    ),
    Option(
        "checkpointLocation",
        text,
        None,
        "streaming",
        "Spark's own option. Spark keeps the query's id in this directory; by this id, the sink "
        "records which batches it has stored.",
    ),
    Option(
        "mappedFileSizeCommitLog", whole(256), "1073741824", "both", "Size of a log file in bytes."
    ),
    Option(
        "mappedFileSizeConsumeQueue",
        whole(20),
        "6000000",
        "both",
        "Size of a consume-queue file in bytes.",
    ),
    Option("maxHashSlotNum", whole(1), "5000000", "both", "Number of hash slots in an index file."),
    Option(
        "maxIndexNum", whole(2), "20000000", "both", "Maximum number of entries in an index file."
    ),
    Option("maxMessageSize", whole(1), "4194304", "both", "Maximum size of a body in bytes."),
    Option(
        "enabledAppendPropCRC",
        boolean,
        "true",
        "both",
        "Whether the last property of each record contains a CRC of the record.",
    ),
    Option(
        "messageDelayLevel",
        text,
        None,
        "both",
        "The delays of the delay levels. Unset: RocketMQ's.",
    ),
    Option("brokerIP1", text, "127.0.0.1", "both", "The address in `storeHost` and `msgId`."),
    Option("listenPort", whole(), "10911", "both", "The port in `storeHost` and `msgId`."),
)
"""An existing store keeps the sizes that its files have."""

SETTINGS = tuple(
    option.name
    for option in SINK_OPTIONS
    if option.name.startswith(("mapped", "max", "enabled", "message", "broker", "listen"))
)
"""Options that are settings of the store."""
