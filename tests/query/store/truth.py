"""What real RocketMQ read from the golden stores, as rows of the source."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.golden import GoldenStore

Row = dict[str, Any]


def expected_rows(golden: GoldenStore) -> list[Row]:
    """Return the recorded messages with the names and forms of the columns."""
    return [_row(message) for message in golden.messages()]


def _row(message: dict[str, Any]) -> Row:
    properties = message["properties"] or {}
    same = (
        "topic flag queueId queueOffset bornTimestamp storeTimestamp physicalOffset size sysFlag "
        "reconsumeTimes preparedTransactionOffset bodySha1"
    )
    return {name: message[name] for name in same.split()} | {
        "bodyCrc": message["bodyCRC"],
        "bornHost": message["bornHost"].removeprefix("/"),
        "storeHost": message["storeHost"].removeprefix("/"),
        "msgId": message["offsetMsgId"],
        "properties": properties,
        "tags": properties.get("TAGS"),
        "keys": properties.get("KEYS", "").split(),
        "uniqKey": properties.get("UNIQ_KEY"),
        "brokerName": None,
    }


def comparable(row: Row) -> Row:
    """Give a row of the source the form of the recorded ones: a digest for the body."""
    row = dict(row)
    return row | {"bodySha1": hashlib.sha1(row.pop("body")).hexdigest()}
