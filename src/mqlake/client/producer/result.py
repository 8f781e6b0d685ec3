"""The result of a send (upstream: `SendResult`, `SendStatus`)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import cast, overload

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
        queue: the queue of the message.
        queue_offset: its queue offset; of a delayed message, its offset in the queue in which it
            waits.
        transaction_id: the id of a half message.
        recall_handle: the handle with which a delayed message can be recalled.
        region: the region of the broker.
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


class SendResults(Sequence[SendResult]):
    """Where the messages of a batch are stored; each result is created on access.

    Args:
        first: the result of the first message.
        message_ids, offset_message_ids: the ids of all messages.
    """

    __slots__ = ("_first", "_message_ids", "_offset_message_ids")

    def __init__(
        self, first: SendResult, message_ids: Sequence[str], offset_message_ids: Sequence[str]
    ) -> None:
        self._first = first
        self._message_ids, self._offset_message_ids = message_ids, offset_message_ids

    def __len__(self) -> int:
        return len(self._message_ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(cast("Sequence[object]", other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    @overload
    def __getitem__(self, index: int) -> SendResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[SendResult]: ...
    def __getitem__(self, index: int | slice) -> SendResult | list[SendResult]:
        if isinstance(index, slice):
            return [self._one(number) for number in range(*index.indices(len(self)))]
        return self._one(range(len(self))[index])

    def _one(self, number: int) -> SendResult:
        return msgspec.structs.replace(
            self._first,
            message_id=self._message_ids[number],
            offset_message_id=self._offset_message_ids[number],
            queue_offset=self._first.queue_offset + number,
        )
