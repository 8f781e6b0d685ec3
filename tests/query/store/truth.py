"""What real RocketMQ read from the golden stores, as rows of the source.

RocketMQ read bodies as stored. Those that are compressed are decompressed here, by Python's zlib:
no producer of these stores used another codec.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

from mqlake.formats import record
from tests.golden import GoldenStore

Row = dict[str, Any]


def expected_rows(golden: GoldenStore) -> list[Row]:
    """Return the recorded messages with the names and forms of the columns."""
    return [_plain(golden, _row(message)) for message in golden.messages()]


def plain_body(golden: GoldenStore, offset: int, sha1: str) -> bytes:
    """Return the decompressed body of the record at a physical offset, whose stored body has this
    digest.
    """
    segments = {int(path.name): path for path in (golden.path / "commitlog").iterdir()}
    base = max(start for start in segments if start <= offset)
    with segments[base].open("rb") as segment:  # It may have a gigabyte.
        segment.seek(offset - base)
        size = segment.read(4)
        body = record.decode(size + segment.read(int.from_bytes(size) - 4), 0).body
    assert hashlib.sha1(body).hexdigest() == sha1
    return zlib.decompress(body)


def _plain(golden: GoldenStore, row: Row) -> Row:
    if not row["sysFlag"] & 1:
        return row
    body = plain_body(golden, row["physicalOffset"], row["bodySha1"])
    return row | {"sysFlag": row["sysFlag"] & ~1, "bodySha1": hashlib.sha1(body).hexdigest()}


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
