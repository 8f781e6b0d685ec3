"""The result of a put."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from mqlake.errors import StoreError
from mqlake.formats.message_id import encode_message_id, encode_message_ids

_FEW: Final = 1000
"""Ids that are formatted faster than they are laid out."""
_OFFSET_DIGITS: Final = 16


class PutStatus(enum.StrEnum):
    """The status of a put: the names of RocketMQ's `PutMessageStatus`."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"
    WHEEL_TIMER_NOT_ENABLE = "WHEEL_TIMER_NOT_ENABLE"
    WHEEL_TIMER_MSG_ILLEGAL = "WHEEL_TIMER_MSG_ILLEGAL"


_PERMANENT = (
    PutStatus.MESSAGE_ILLEGAL,
    PutStatus.PROPERTIES_SIZE_EXCEEDED,
    PutStatus.WHEEL_TIMER_MSG_ILLEGAL,
)


class PutResult(msgspec.Struct, frozen=True, gc=False):
    """Where a message, or the first of a batch, was put, or why it was not.

    Attributes:
        physical_offset: of the (first) record; -1 if nothing was put.
        size: bytes of all records.
        queue_offset: of the (first) message; 0 for a message that gets no queue entry.
        store_timestamp: milliseconds.
        count: messages; 0 if nothing was put.
        store_host: 8 or 20 bytes, as in the record.
        offsets: physical offsets of all records of a batch; empty for a single message, and for an
            inner batch, which is one record.
        reason: one line for a person, if the status is not PUT_OK.
        waits_for_slaves: whether a SYNC_MASTER acknowledges it only once enough slaves have it; not
            if the message has the property WAIT=false.
    """

    status: PutStatus
    physical_offset: int = -1
    size: int = 0
    queue_offset: int = -1
    store_timestamp: int = 0
    count: int = 0
    store_host: bytes = b""
    offsets: Sequence[int] = ()
    reason: str = ""
    waits_for_slaves: bool = True

    @property
    def end(self) -> int:
        """Return the physical offset after the last record; -1 if nothing was put."""
        return self.physical_offset + self.size

    @property
    def is_ok(self) -> bool:
        """Return whether all was put, and as durable as the settings promise."""
        return self.status is PutStatus.PUT_OK

    @property
    def is_permanent(self) -> bool:
        """Return whether a message was refused for a reason that will not change."""
        return self.status in _PERMANENT

    def failed(self, status: PutStatus, reason: str) -> PutResult:
        """Return the result if the message was put, but is not as durable as promised."""
        return msgspec.structs.replace(self, status=status, reason=reason)

    @property
    def message_id(self) -> str:
        """Return the offset message id; "" without one.

        For a batch: all of its ids, joined by commas.
        """
        if not self.count:
            return ""
        if not self.offsets:
            return encode_message_id(self.store_host, self.physical_offset)
        return many_message_ids(self.store_host, self.offsets)


class PutError(StoreError):
    """A message was not put, or is not certain to survive.

    Attributes:
        result: with the status and the reason. If it has a physical offset, the message is in the
            log, and may be read later.
    """

    def __init__(self, result: PutResult) -> None:
        super().__init__(f"{result.status}: {result.reason}")
        self.result = result


def many_message_ids(store_host: bytes, physical_offsets: Sequence[int]) -> str:
    """Return the offset ids of several records of a broker, joined by commas.

    An answer to a batch has all of them, however many there are.

    Raises:
        FormatError: as `encode_message_id`.
    """
    if len(physical_offsets) < _FEW:
        return encode_message_ids(store_host, physical_offsets)
    sample = np.frombuffer(f"{encode_message_id(store_host, 0)},".encode(), np.uint8)
    table = np.empty((len(physical_offsets), len(sample)), np.uint8)
    table[:] = sample
    digits = np.array(physical_offsets, ">i8").tobytes().hex().upper().encode()
    table[:, -_OFFSET_DIGITS - 1 : -1] = np.frombuffer(digits, f"V{_OFFSET_DIGITS}").view(
        (np.uint8, _OFFSET_DIGITS)
    )
    return table.tobytes()[:-1].decode("ascii")
