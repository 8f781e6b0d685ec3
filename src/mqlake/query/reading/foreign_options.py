"""What to give instead of options and columns of other data sources, which users know."""

from __future__ import annotations

from collections.abc import Sequence

_KAFKA = (
    "it belongs to Kafka: give nameServer for a RocketMQ cluster, or path for a store directory; "
    "Spark's format kafka reads Kafka's brokers, and format kafka-log its log directories"
)
_KAFKA_LOG = (
    "format kafka-log reads log directories (option path); Spark's format kafka reads Kafka's "
    "brokers"
)
_ROCKETMQ = (
    "format kafka-log reads Kafka's log directories (option path); format rocketmq reads RocketMQ"
)
_LIVE = "mqlake.open reads store directories; Spark's format rocketmq reads running clusters"
_BROKERS = "give nameServer: the name servers know the brokers"
_GROUP = "a query needs no consumer group: its checkpoint has its position"

_KAFKA_NAMES = frozenset(("bootstrap.servers", "bootstrapservers", "includeheaders"))
_BROKER_NAMES = frozenset(("broker", "brokers", "brokeraddr", "brokeraddress", "host", "hosts"))
_NAME_SERVERS = frozenset(("nameserver", "namesrvaddr", "rocketmq.namesrvaddr"))
_GROUP_NAMES = frozenset(
    ("group", "groupid", "group.id", "consumergroup", "consumer.group", "rocketmq.group")
)


_KAFKA_COLUMNS = {
    "key": "keys",
    "value": "body",
    "partition": "queueId",
    "offset": "queueOffset",
    "timestamp": "storeTimestamp",
    "headers": "properties",
}


def foreign_column(name: str, known: Sequence[str]) -> str | None:
    """Return what to name instead of a column that Spark's format kafka has; None for others.

    Args:
        known: the names of this source's columns.
    """
    meant = _KAFKA_COLUMNS.get(name.lower())
    return f"Kafka's {name.lower()} is {meant} here" if meant in known else None


def foreign_option(name: str, known: Sequence[str]) -> str | None:
    """Return what to do about an option that another source has; None for any other name.

    Args:
        known: the names of this source's options.
    """
    lowered = name.lower()
    is_rocketmq = "tags" in known
    if lowered.startswith("kafka.") or lowered in _KAFKA_NAMES:
        return _KAFKA if is_rocketmq else _KAFKA_LOG
    if lowered in _NAME_SERVERS:
        return _LIVE if is_rocketmq else _ROCKETMQ
    if not is_rocketmq:
        return None
    if lowered in _BROKER_NAMES:
        return _BROKERS
    return _GROUP if lowered in _GROUP_NAMES else None
