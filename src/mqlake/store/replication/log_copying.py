"""The bytes of a live store's log: read for slaves, and taken from a master.

Upstream: `DefaultMessageStore.getCommitLogData` and `appendToCommitLog`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from mqlake.errors import StoreError
from mqlake.formats.properties import NAME_VALUE_SEPARATOR, WAIT, decode_properties
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult
from mqlake.store.settings import FlushDiskType

if TYPE_CHECKING:
    from mqlake.store.owned_store import OwnedStore

_WAITS = f"{WAIT}{NAME_VALUE_SEPARATOR}true".encode()
_ASKS = f"{WAIT}{NAME_VALUE_SEPARATOR}".encode()


class LogCopying:
    """The log of one store as bytes. For the tasks of its event loop.

    Args:
        sync: makes the log durable.
        written: to be called once the log has grown.

    Attributes:
        grown: called, in the same round of the loop, when there may be more for slaves.
    """

    def __init__(
        self, core: OwnedStore, sync: Callable[[], Awaitable[None]], written: Callable[[], None]
    ) -> None:
        self._core, self._sync, self._written = core, sync, written
        self.grown: Callable[[], object] | None = None

    def tell(self) -> None:
        """Tell who copies the log that it may have grown."""
        if self.grown is not None:
            self.grown()

    # A master

    @property
    def end(self) -> int:
        """Physical offset before which the log may be copied."""
        return self._core.watermarks.confirmed

    @property
    def last_file(self) -> int:
        """Physical offset of the first byte of the file that `end` is in."""
        log = self._core.log
        return next((each.base for each in reversed(log.segments) if each.base <= self.end), 0)

    def part(self, offset: int, most: int) -> memoryview:
        """Return up to `most` bytes of one file from a physical offset on; none at `end`.

        Raises:
            StoreError: the log has no such byte any more, or cannot be read.
        """
        log, end = self._core.log, self.end
        if offset >= end:
            return memoryview(b"")
        segment = log.segment_at(offset)
        if segment is None:
            where = f"[{log.min_offset}, {end})"
            raise StoreError(f"the log has {where}, and nothing at physical offset {offset}")
        return log.read(offset, min(most, segment.end - offset, end - offset))

    def reading(self, offset: int, most: int) -> Callable[[], bytes]:
        """Return what does the same in another thread, and may have to wait for the disk.

        Raises:
            StoreError: as `part`.
        """
        log, length = self._core.log, len(self.part(offset, most))
        segment = log.segment_at(offset)
        assert segment is not None
        file = log.file(segment)
        return lambda: file.read(offset - segment.base, length)

    # A slave

    @property
    def expected(self) -> int:
        """Physical offset of the next byte that is to come."""
        return self._core.received.expected

    @property
    def recovered_from(self) -> int | None:
        """Physical offset from which on a power loss may have changed what recovery has kept.

        None if the last process closed the store.
        """
        found = self._core.recovered
        return None if found.is_clean else min(found.start, found.log_end)

    @property
    def is_empty(self) -> bool:
        """Whether the log has no record yet: it begins where the master's does."""
        return not self._core.log.segments

    @property
    def largest_record(self) -> int:
        """Most bytes that a record of this log may have."""
        return self._core.log.largest_record

    def begin_at(self, physical_offset: int) -> None:
        """Let an empty log begin there: see `OwnedStore.begin_at`."""
        self._core.begin_at(physical_offset)

    def take(self, data: bytes | memoryview) -> None:
        """Append bytes that begin at `expected`: see `OwnedStore.receive`."""
        self._core.receive(data)
        self._written()

    def drop(self) -> None:
        """Forget the bytes of a record that is not complete: they are to come again."""
        self._core.received.drop()

    def follow(self) -> None:
        """Get ready for a master's records: see `OwnedStore.follow`. It waits for the disk."""
        self._core.follow()

    def lead(self) -> None:
        """Get ready for messages of one's own: see `OwnedStore.lead`. It waits for the disk."""
        self._core.lead()

    async def kept(self) -> int:
        """Return up to where a master may count on this copy.

        Under SYNC_FLUSH that is on the disk.

        Raises:
            StoreError: the disk failed.
        """
        core = self._core
        if core.settings.flush_disk_type is FlushDiskType.SYNC_FLUSH:
            if core.log.flushed < core.log.end:
                await self._sync()
            if core.failure is not None:
                raise core.failure
            return core.log.flushed
        return core.log.end


def waiting(result: PutResult, message: Message | MessageBatch) -> PutResult:
    """Return a result that says whether its message asks to be copied before it is acknowledged."""
    if (data := message.encoded_properties) is not None:
        if _WAITS in data or _ASKS not in data:
            return result
        asked = decode_properties(data).get(WAIT)
    elif isinstance(message, Message) and message.properties:
        asked = message.properties.get(WAIT)
    else:
        return result
    if not asked or asked.lower() == "true":
        return result
    return msgspec.structs.replace(result, waits_for_slaves=False)
