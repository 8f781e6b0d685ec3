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

    async def settle(self, queue: MessageQueue, offset: int, *, leaves: bool) -> None:
        """Store the offset of a queue that is not read now, as `commit` does.

        Args:
            leaves: whether another member reads the queue from now on.
        """
        ...

    def flush(self) -> None:
        """Write the offsets that `note` has collected."""
        ...


class BrokerOffsets:
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

    async def settle(self, queue: MessageQueue, offset: int, *, leaves: bool) -> None:
        # RocketMQ serves the requests of a connection concurrently. The last pull, which commits an
        # older offset, may be served after the commit.
        stored: int | None = None
        for _ in range(_SETTLE_TRIES):
            await self.commit(queue, offset)
            stored = await self._calls.offset_of_group(queue)
            # A later offset may be that of the next member, perhaps of this process.
            if stored == offset or (leaves and stored is not None and stored > offset):
                return
        _log.warning(
            "%s: the broker keeps offset %s instead of %d: the group was reset, the topic was "
            "created again, or a client commits offsets of a queue that it does not read",
            queue,
            stored,
            offset,
        )

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

    async def settle(self, queue: MessageQueue, offset: int, *, leaves: bool) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""
