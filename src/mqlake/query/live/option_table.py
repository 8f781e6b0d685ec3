"""The options of the source "rocketmq" on a running cluster (docs/spark-live.md has this table).

Options that mean the same as on a store directory are taken from there.
"""

from __future__ import annotations

import re

from mqlake.client import access_options
from mqlake.query.live import place
from mqlake.query.reading import queue_json
from mqlake.query.reading.limits import EARLIEST, LATEST, limit
from mqlake.query.reading.parsing import Option, boolean, choice, duration, text, whole, words
from mqlake.query.store.option_table import SOURCE_OPTIONS

_ADDRESS = re.compile(r".+:\d{1,5}")


def _addresses(value: str) -> str:
    """Accept addresses of name servers."""
    if "," in value:
        raise ValueError("addresses separated by ;")
    for address in filter(None, (part.strip() for part in value.split(";"))):
        scheme, sign, rest = address.partition("://")
        if sign:
            raise ValueError(f"host:port without {scheme}://, as in {rest.rstrip('/')}")
        if not _ADDRESS.fullmatch(address):
            raise ValueError(f"host:port, as in {address.rstrip(':')}:9876")
    return text(value)


NAME_SERVER = Option(
    place.NAME_SERVER[0],
    _addresses,
    None,
    "both",
    "The name servers, `host:port`, separated by `;`. If neither this option nor `path` is given, "
    "they come from the environment variable `NAMESRV_ADDR`.",
    place.NAME_SERVER[1:],
)
RETRY_TIMEOUT = Option(
    "retryTimeout",
    duration,
    "2m",
    "both",
    "If a broker or name server does not answer, or is busy: how long the request is repeated "
    "before the query fails.",
    ("pullTimeoutMs",),
)


def _access_option(option: access_options.AccessOption) -> Option:
    meaning = f"{option.meaning} Default: the driver's environment variable `{option.variable}`."
    return Option(
        option.name, choice(*option.values) if option.values else text, None, "both", meaning
    )


ACCESS_OPTIONS = tuple(map(_access_option, access_options.OPTIONS))

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
    "decompress",
    "pushFilters",
)

LIVE_OPTIONS: tuple[Option, ...] = (
    NAME_SERVER,
    *ACCESS_OPTIONS,
    Option(
        "subscribe",
        _OF_DIRECTORIES["subscribe"].parse,
        None,
        "both",
        "Topics, separated by commas. Without `subscribe`, `subscribePattern` and `assign`: all "
        "topics except RocketMQ's own and those of groups (`%RETRY%…`, `%DLQ%…`).",
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
        "Milliseconds since 1970 by queue, in the form of `startingOffsets`. Other queues start "
        "at the earliest offset.",
    ),
    Option(
        "startingOffsets",
        limit(EARLIEST, LATEST, offsets=queue_json.of_brokers_offsets),
        None,
        "both",
        '`earliest`, `latest` (streaming), or by queue: `{"TopicA": {"broker-a": {"0": 23}}}`, '
        "with -2 for the earliest and -1 for the latest offset. Other queues start at the "
        "earliest. The broker may be omitted if only one has the topic. Unset: earliest in batch "
        "queries, latest in streaming queries. A restarted query continues at its checkpoint.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        queue_json.of_brokers_timestamps,
        None,
        "batch",
        "Milliseconds since 1970 by queue. Other queues end at the latest offset.",
    ),
    Option(
        "endingOffsets",
        limit(LATEST, offsets=queue_json.of_brokers_offsets),
        None,
        "batch",
        "`latest`, or exclusive offsets by queue, in the form of `startingOffsets`, without -2.",
    ),
    Option(
        "failOnDataLoss",
        boolean,
        "true",
        "both",
        "Fail if messages are damaged or deleted, if a given offset is outside the queue's range, "
        "if a topic was deleted and created again, or if a queue is gone or its broker does not "
        "answer; in a batch query also if a topic or queue does not exist. With `false`, skip, "
        "count and log such messages.",
    ),
    Option(
        "minPartitions",
        whole(1),
        None,
        "both",
        "The minimum number of tasks, approximately; long queues are split to reach it. Unset: one "
        "for each core of the driver's machine, or more if there are many messages, but never more "
        "than there are queues.",
    ),
    Option(
        "maxRecordsPerPartition",
        whole(1),
        None,
        "both",
        "The maximum number of queue offsets in a task.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        whole(1),
        None,
        "streaming",
        "The maximum number of queue offsets in a micro-batch, shared among the queues in "
        "proportion to their backlogs. Messages that `tags` or `keys` exclude count, too.",
    ),
    Option(
        "groupId",
        text,
        None,
        "streaming",
        "A consumer group whose offsets are committed to the brokers after each micro-batch, so "
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
        "The maximum number of messages in a pull. Brokers have a limit of their own: 32 by "
        "default (`maxTransferCountOnMessageInMemory`).",
    ),
    RETRY_TIMEOUT,
    Option(
        "localStore",
        words(","),
        None,
        "both",
        "Store directories, separated by commas. If the host of a task has the broker's store, or "
        "a slave's, in one of them, the task reads that store's files instead of pulling.",
    ),
    *(_OF_DIRECTORIES[name] for name in _SAME),
)
