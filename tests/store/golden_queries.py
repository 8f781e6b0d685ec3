"""Messages and queries as they were recorded."""

from __future__ import annotations

from typing import Any

FIELDS = (
    *("physicalOffset", "size", "queueId", "flag", "queueOffset", "sysFlag", "topic"),
    *("bornTimestamp", "storeTimestamp", "reconsumeTimes", "preparedTransactionOffset"),
    "properties",
)


def has_key(message: dict[str, Any], query: dict[str, Any]) -> bool:
    properties, key = message["properties"], query["key"]
    if message["topic"] != query["topic"] or message["sysFlag"] & 12 == 12:
        return False
    if query.get("indexType") == "T":
        return properties.get("TAGS") == key
    keys = [one for one in properties.get("KEYS", "").split(" ") if one]
    return key in keys or properties.get("UNIQ_KEY") == key
