"""Messages and queries as they were recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

FIELDS = (
    *("physicalOffset", "size", "queueId", "flag", "queueOffset", "sysFlag", "topic"),
    *("bornTimestamp", "storeTimestamp", "reconsumeTimes", "preparedTransactionOffset"),
    "properties",
)


class Keys:
    """The messages that have each key, found without an index file.

    Args:
        messages: in physical order.
    """

    def __init__(self, messages: Iterable[dict[str, Any]]) -> None:
        self._found: defaultdict[tuple[str, str, bool], list[int]] = defaultdict(list)
        for message in messages:
            if message["sysFlag"] & 12 == 12:
                continue
            topic, properties = message["topic"], message["properties"]
            keys = {*properties.get("KEYS", "").split(" "), properties.get("UNIQ_KEY", "")}
            for key in keys - {""}:
                self._found[topic, key, False].append(message["physicalOffset"])
            if "TAGS" in properties:
                self._found[topic, properties["TAGS"], True].append(message["physicalOffset"])

    def matching(self, query: dict[str, Any]) -> list[int]:
        """Return the physical offsets of all messages that have a query's topic and key."""
        is_tag = query.get("indexType") == "T"
        return self._found.get((query["topic"], query["key"], is_tag), [])
