"""The offsets of a consumer.

Upstream: `RemoteBrokerOffsetStore`; `local_offsets` has `LocalFileOffsetStore`.
"""

from __future__ import annotations

import logging
from typing import Protocol

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue

_log = logging.getLogger(__name__)

_SETTLE_TRIES = 3


class Offsets(Protocol):
    """Stores the queue offsets at which a consumer resumes after a restart."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Return the stored offset of a queue, None if the queue has no stored offset.

        Raises:
            MqlakeError: the offset cannot be read now.
        """
        ...

    async def note(self, queue: MessageQueue, offset: int) -> None:
        """Store an offset without waiting for the result. A failure is logged, not raised."""
        ...

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Store an offset, even if it is smaller than the stored one; return once it is stored.

        Raises:
            MqlakeError: the offset is not stored.
        """
        ...

    async def settle(self, queue: MessageQueue, offset: int) -> None:
        """Store the offset of a queue that is no longer read, as `commit` does."""
        ...

    def flush(self) -> None:
        """Write the offsets that `note` has collected."""
        ...


class GroupOffsets:
    """Offsets that the brokers keep for the whole group."""

    def __init__(self, calls: BrokerCalls) -> None:
        self._calls = calls
        self._noted: dict[MessageQueue, int] = {}

    async def read(self, queue: MessageQueue) -> int | None:
        self._noted.pop(queue, None)
        return await self._calls.offset_of_group(queue)

    async def note(self, queue: MessageQueue, offset: int) -> None:
        if self._noted.get(queue) == offset:
            return
        try:
            await self._calls.note_offset(queue, offset)
            self._noted[queue] = offset
        except MqlakeError as error:
            _log.warning("offset %d of %s is not committed yet: %s", offset, queue, error)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        self._noted.pop(queue, None)
        await self._calls.commit_offset(queue, offset)

    async def settle(self, queue: MessageQueue, offset: int) -> None:
        # RocketMQ serves the requests of a connection concurrently. The last pull, which commits an
        # older offset, may be served after the commit.
        for _ in range(_SETTLE_TRIES):
            await self.commit(queue, offset)
            if await self._calls.offset_of_group(queue) == offset:
                return
        _log.warning("%s: another client also commits offsets of this group", queue)

    def flush(self) -> None:
        """Do nothing: the brokers have all offsets."""


class NoOffsets:
    """Offsets of a reader without a group; none are stored."""

    async def read(self, queue: MessageQueue) -> int | None:  # noqa: ARG002
        return None

    async def note(self, queue: MessageQueue, offset: int) -> None:
        """Do nothing."""

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Do nothing."""

    async def settle(self, queue: MessageQueue, offset: int) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""
