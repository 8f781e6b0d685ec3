"""Messages as JSON objects, one for each line: what `mqlake consume --json` writes and `produce`
reads.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from mqlake.client.message import Message, ReceivedMessage
from mqlake.errors import FormatError
from mqlake.formats.own_properties import ADDED, CLUSTER, MSG_REGION, TRACE_ON
from mqlake.formats.properties import (
    DELAY_MS,
    DELAY_SEC,
    DELIVER_MS,
    KEYS,
    PGROUP,
    PRIORITY,
    SHARDING_KEY,
    TAGS,
    TRAN_MSG,
    TRANSACTION_ID,
    UNIQ_KEY,
    WAIT,
)

NOT_SENT_AGAIN = ADDED | {
    *(KEYS, TAGS, UNIQ_KEY, WAIT, SHARDING_KEY, PRIORITY),
    *(MSG_REGION, TRACE_ON, CLUSTER),
    *(DELAY_MS, DELIVER_MS, DELAY_SEC, "TIMER_DELAY_LEVEL", TRAN_MSG, PGROUP),
    TRANSACTION_ID,
}
"""Properties that have a member of their own, or that RocketMQ sets. A message that was delivered
late, or after a retry, is not delayed or retried again when it is sent again.
"""


class _Given(msgspec.Struct, rename="camel", kw_only=True):
    topic: str | None = None
    body: str | None = None
    body_base64: str | None = None
    tags: str | None = None
    keys: str | list[str] = []
    properties: dict[str, str] = {}
    sharding_key: str | None = None
    priority: int | None = None
    delay_level: int = 0
    delay: int | None = None
    deliver_at: int | None = None


_decode = msgspec.json.Decoder(_Given).decode


def message_from_json(line: bytes, topic: str) -> Message:
    """Return the message of a JSON object; unknown members are ignored.

    Args:
        topic: the topic of the message, whatever the object says.

    Raises:
        FormatError: it does not describe a message.
    """
    try:
        given = _decode(line)
        body = _body(given)
    except (msgspec.MsgspecError, UnicodeDecodeError, binascii.Error) as error:
        raise FormatError(f"not a message: {error}") from None
    properties = {
        name: value for name, value in given.properties.items() if name not in NOT_SENT_AGAIN
    }
    return Message(
        topic=topic,
        body=body,
        tags=given.tags,
        keys=given.keys,
        properties=properties,
        sharding_key=given.sharding_key,
        priority=given.priority,
        delay_level=given.delay_level,
        delay=given.delay,
        deliver_at=given.deliver_at,
    )


def message_to_json(message: ReceivedMessage) -> dict[str, Any]:
    """Return a message as a JSON object: `body` if it is UTF-8, otherwise `bodyBase64`."""
    found: dict[str, Any] = {
        "topic": message.topic,
        "brokerName": message.queue.broker_name,
        "queueId": message.queue.queue_id,
        "queueOffset": message.queue_offset,
        "msgId": message.message_id,
        "offsetMsgId": message.offset_message_id,
        "tags": message.tags,
        "keys": message.keys,
        "shardingKey": message.properties.get(SHARDING_KEY),
        "priority": message.priority,
        "properties": message.properties,
        "bornTimestamp": message.born_timestamp,
        "bornHost": message.born_host,
        "storeTimestamp": message.store_timestamp,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
    }
    text = as_text(message.body)
    found |= {"body": text} if text is not None else {"bodyBase64": _base64(message.body)}
    return found


def as_text(body: bytes) -> str | None:
    """Return a body as text, None if it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _body(given: _Given) -> bytes:
    if given.body is not None:
        return given.body.encode()
    return base64.b64decode(given.body_base64 or "", validate=True)


def _base64(body: bytes) -> str:
    return base64.b64encode(body).decode("ascii")
