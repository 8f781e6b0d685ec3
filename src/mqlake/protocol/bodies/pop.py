"""Bodies of pop consumption.

Upstream: `BatchAckMessageRequestBody`, `QueryAssignmentRequestBody`,
`QueryAssignmentResponseBody`, `SetMessageRequestModeRequestBody`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from mqlake.formats.fastjson_values import ORDINALS
from mqlake.protocol.bodies.heartbeat import CLUSTERING, MessageModel
from mqlake.protocol.bodies.message_queue import MessageQueue

PULL, POP = "PULL", "POP"
"""How a group reads a topic."""


class BatchAck(msgspec.Struct):
    """The consumed messages of one pop from one queue.

    Attributes:
        retry: the topic's mark: "0" the topic itself, "1" or "2" the group's retry topic for it.
        bits: base64 of a bit set; the lowest bit of the first byte stands for `start_offset`.
    """

    consumer_group: str = msgspec.field(name="c")
    topic: str = msgspec.field(name="t")
    start_offset: int = msgspec.field(name="so")
    queue_id: int = msgspec.field(name="q")
    revive_queue_id: int = msgspec.field(name="rq")
    pop_time: int = msgspec.field(name="pt")
    invisible_time: int = msgspec.field(name="it")
    retry: str = msgspec.field(name="r", default="0")
    bits: bytes = msgspec.field(name="b", default=b"")


class BatchAcks(msgspec.Struct, rename="camel"):
    """BATCH_ACK_MESSAGE."""

    broker_name: str | None = None
    acks: list[BatchAck] = []


class AssignmentQuery(msgspec.Struct, rename="camel"):
    """QUERY_ASSIGNMENT: which queues of a topic a consumer reads, by a given strategy."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str = "AVG"
    message_model: MessageModel = CLUSTERING


class Assignment(msgspec.Struct, rename="camel"):
    """A queue (id -1: all queues of its broker), and whether it is pulled or popped."""

    message_queue: MessageQueue
    mode: str = PULL


class Assignments(msgspec.Struct, rename="camel"):
    """The answer; None if the consumer keeps its queues."""

    message_queue_assignments: list[Assignment] | None = None


_Mode = Annotated[str, msgspec.Meta(extra={ORDINALS: (PULL, POP)})]


class RequestMode(msgspec.Struct, rename="camel"):
    """SET_MESSAGE_REQUEST_MODE: whether a group pulls or pops a topic.

    Attributes:
        mode: "PULL" or "POP".
        pop_share_queue_num: how many other consumers share a queue; 0 for all.
    """

    topic: str
    consumer_group: str
    mode: _Mode = PULL
    pop_share_queue_num: int = 0
