"""Write a record as the JSON object that people and programs get (docs/formats/message_json.md)."""

from __future__ import annotations

import base64
from typing import Any

from mqlake.formats.record import Record


def to_json(record: Record) -> dict[str, Any]:
    """Return the record under RocketMQ's names; the body, as stored, in base64."""
    return {
        "topic": record.topic,
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "physicalOffset": record.physical_offset,
        "size": record.size,
        "bodyCrc": record.body_crc,
        "sysFlag": record.sys_flag,
        "flag": record.flag,
        "bornTimestamp": record.born_timestamp,
        "storeTimestamp": record.store_timestamp,
        "bornHost": record.born_host,
        "storeHost": record.store_host,
        "reconsumeTimes": record.reconsume_times,
        "preparedTransactionOffset": record.prepared_transaction_offset,
        "properties": record.properties,
        "body": base64.b64encode(record.body).decode("ascii"),
        "msgId": record.message_id,
    }
