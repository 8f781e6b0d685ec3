"""Put messages with a priority to the queue with that number.

Upstream: `SendMessageProcessor.sendMessage`, `TopicMessageType.parseFromMessageProperty`.
"""

from __future__ import annotations

from mqlake.formats.properties import (
    DELAY,
    DELAY_MS,
    DELAY_SEC,
    DELIVER_MS,
    PRIORITY,
    SHARDING_KEY,
    TRAN_MSG,
    decode_properties,
    priority_of,
)
from mqlake.formats.property_edits import edit

PRIORITY_NAME = PRIORITY.encode()
"""Present in the properties of every message that has a priority."""

_OF_OTHER_TYPES = frozenset((DELAY, DELIVER_MS, DELAY_SEC, DELAY_MS, SHARDING_KEY))


def placed(properties: bytes, queue_id: int, queues: int) -> tuple[bytes, int]:
    """Return the properties and the queue of a message that may have a priority.

    A message with a priority goes to the queue with that number, or to the last queue if there are
    fewer. Half messages, delayed messages and messages with a sharding key lose their priority. As
    in RocketMQ, the type of the topic does not matter here.

    Args:
        properties: encoded.
        queue_id: the queue that the producer chose.
        queues: the number of writable queues of the topic; more than 0.
    """
    pairs = decode_properties(properties)
    priority = priority_of(pairs)
    if priority is None:
        return properties, queue_id
    if pairs.get(TRAN_MSG, "").lower() == "true" or not _OF_OTHER_TYPES.isdisjoint(pairs):
        return edit(properties, (PRIORITY,)), queue_id
    return properties, min(priority, queues - 1)
