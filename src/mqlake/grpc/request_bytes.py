"""The bytes of one call's requests, cut into messages."""

from __future__ import annotations

from typing import Final

from mqlake.grpc.responses import PREFIX_SIZE
from mqlake.grpc.status import GrpcError, GrpcStatus

_MUCH_TAKEN: Final = 65_536
"""Bytes of taken messages that are kept before the others are moved."""


def whole_message(data: bytes, most: int) -> bytes | None:
    """Return the message if these bytes are exactly one of at most so many bytes, prefix included.

    If they are not, a `RequestBytes` says what they are.
    """
    if (
        PREFIX_SIZE <= len(data) <= most
        and not data[0]
        and int.from_bytes(data[1:PREFIX_SIZE]) == len(data) - PREFIX_SIZE
    ):
        return data[PREFIX_SIZE:]
    return None


class RequestBytes:
    """What has arrived of requests that are not taken yet.

    Args:
        most: bytes that one message may have.
        setting: what sets this maximum.
    """

    __slots__ = ("_at", "_data", "_most", "_setting")

    def __init__(self, most: int, setting: str) -> None:
        self._most, self._setting = most, setting
        self._data = bytearray()
        self._at = 0

    @property
    def held(self) -> int:
        """Return how many bytes are held."""
        return len(self._data) - self._at

    @property
    def is_incomplete(self) -> bool:
        """Return whether the next message has begun, and is not complete."""
        if self.held < PREFIX_SIZE:
            return self.held > 0
        begin = self._at + PREFIX_SIZE
        return self.held < PREFIX_SIZE + int.from_bytes(self._data[begin - 4 : begin])

    def add(self, data: bytes) -> None:
        """Add what has arrived."""
        self._data += data

    def clear(self) -> None:
        """Forget what has arrived."""
        self._data, self._at = bytearray(), 0

    def missing(self) -> int:
        """Return how many bytes the next message lacks: at least 1 if it is not complete.

        Raises:
            GrpcError: it is compressed, or too large.
        """
        data, at = self._data, self._at
        if self.held < PREFIX_SIZE:
            return PREFIX_SIZE - self.held
        size = int.from_bytes(data[at + 1 : at + PREFIX_SIZE])
        if data[at]:
            raise GrpcError(
                GrpcStatus.UNIMPLEMENTED,
                "a request is compressed, and this server accepts identity",
            )
        if size > self._most:
            raise GrpcError(
                GrpcStatus.RESOURCE_EXHAUSTED,
                f"a request of {size} bytes: the limit of this method is {self._most} "
                f"({self._setting})",
            )
        return max(0, PREFIX_SIZE + size - self.held)

    def take(self) -> bytes | None:
        """Return the next message; None if it is not complete.

        Raises:
            GrpcError: as `missing`.
        """
        if self.missing():
            return None
        begin = self._at + PREFIX_SIZE
        end = begin + int.from_bytes(self._data[begin - 4 : begin])
        message = bytes(memoryview(self._data)[begin:end])
        if end == len(self._data):
            self._data, self._at = bytearray(), 0
        else:
            self._at = end
            if end > _MUCH_TAKEN:
                del self._data[:end]
                self._at = 0
        return message
