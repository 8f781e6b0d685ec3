"""Write a record as the JSON object that people and programs get (docs/kafka.md)."""

from __future__ import annotations

import base64
from typing import Any

from mqlake.formats.kafka.batch import Record


def to_json(record: Record) -> dict[str, Any]:
    """Return the record under Kafka's names; keys, values and header values in base64 or null."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestampType": str(record.timestamp_type),
        "leaderEpoch": record.leader_epoch,
        "key": _encode(record.key),
        "value": _encode(record.value),
        "headers": [[name, _encode(value)] for name, value in record.headers],
    }


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")
