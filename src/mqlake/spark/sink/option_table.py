"""The options of the sink "rocketmq" (docs/spark-sink.md has this table).

`topic` is that of Spark's Kafka sink; settings of the store are named as in `broker.conf`.
"""

from __future__ import annotations

from mqlake.spark.options.parsing import Option, boolean, text, whole

SINK_OPTIONS: tuple[Option, ...] = (
    Option(
        "path",
        text,
        None,
        "both",
        "Required. The store directory: a new one, or one of a broker that was stopped.",
    ),
    Option(
        "topic",
        text,
        None,
        "both",
        "The topic of all messages; comes before the column `topic`.",
    ),
    Option(
        "defaultTopicQueueNums",
        whole(1),
        "4",
        "both",
        "Messages without a `queueId` go to so many queues by turns.",
    ),
    Option(
        "checkpointLocation",
        text,
        None,
        "streaming",
        "Spark's own. What the sink has taken is noted under the id that Spark keeps there.",
    ),
    Option("mappedFileSizeCommitLog", whole(256), "1073741824", "both", "Bytes of a log file."),
    Option(
        "mappedFileSizeConsumeQueue", whole(20), "6000000", "both", "Bytes of a consume-queue file."
    ),
    Option("maxHashSlotNum", whole(1), "5000000", "both", "Hash slots of an index file."),
    Option("maxIndexNum", whole(2), "20000000", "both", "Entries of an index file."),
    Option("maxMessageSize", whole(1), "4194304", "both", "Most bytes of a body."),
    Option(
        "enabledAppendPropCRC",
        boolean,
        "true",
        "both",
        "Whether each record states a CRC of itself in its last property.",
    ),
    Option("messageDelayLevel", text, None, "both", "Delays of the levels. Unset: RocketMQ's."),
    Option("brokerIP1", text, "127.0.0.1", "both", "The address in `storeHost` and `msgId`."),
    Option("listenPort", whole(), "10911", "both", "The port there."),
)
"""An existing store keeps the sizes that its files have."""

SETTINGS = tuple(
    option.name
    for option in SINK_OPTIONS
    if option.name.startswith(("mapped", "max", "enabled", "message", "broker", "listen"))
)
"""Options that are settings of the store."""
