"""Records as Kafka's consumer gave them."""

from __future__ import annotations

import base64
from typing import Any

from mqlake.formats.kafka.batch import Record
from tests import golden_kafka


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def as_consumed(record: Record) -> dict[str, Any]:
    return golden_kafka.short(
        {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": record.timestamp_type,
            "leaderEpoch": record.leader_epoch,
            "key": encoded(record.key),
            "value": encoded(record.value),
            "headers": [[name, encoded(value)] for name, value in record.headers],
        }
    )
