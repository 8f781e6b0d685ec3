"""What becomes of a message that was sent (upstream: `SendResult`, `SendStatus`)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from mqlake.client.trace.records import DEFAULT_REGION
from mqlake.protocol.bodies.message_queue import MessageQueue


class SendStatus(StrEnum):
    """How durable a message is that a broker has stored."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class SendResult(msgspec.Struct, frozen=True, gc=False):
    """Where a message is stored.

    Attributes:
        status: all but SEND_OK say that it is stored, but not yet as durable as the broker is set
            to make it.
        message_id: its unique key, which its consumers see.
        offset_message_id: the broker's address and the physical offset.
        queue: the queue that it is in.
        queue_offset: its number there; of a delayed message, in the queue in which it waits.
        transaction_id: of a half message.
        recall_handle: what takes a delayed message back.
        region: of the broker.
        is_traced: whether the broker wants message traces.
    """

    status: SendStatus
    message_id: str
    offset_message_id: str
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None
    region: str = DEFAULT_REGION
    is_traced: bool = True
