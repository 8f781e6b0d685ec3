"""Records that a caller writes at the end of a log itself, many in one call of a kernel.

It writes them as `mqlake.dispatch.compiled.put_sent` does, and then reports what it has written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.writing.puts import make_route
from mqlake.errors import DiskError
from mqlake.formats.host import V4_SIZE
from mqlake.store.append.checks import AppendChecks, Refusal
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.queue_offsets import Queue, QueueOffsets

_LITTLE: Final = 1 << 17
"""Bytes of room that may be too few for the next records of a caller."""


class WritableEnd(NamedTuple):
    """Where records may be written.

    Attributes:
        array: u8[n], the last file of the log.
        end: the physical offset of the next record.
        room_end: the position in that file before which records may be written.
        base: the physical offset of the file's first byte.
        ends: i8[n], the next offset of each queue, below 0 for one without records: see
            `QueueOffsets`. Whoever writes a record changes that of its queue.
    """

    array: Bytes
    end: int
    room_end: int
    base: int
    ends: Longs


class OutsidePuts:
    """Lets a caller write records. For the store's thread."""

    def __init__(self, log: OwnedCommitLog, offsets: QueueOffsets, checks: AppendChecks) -> None:
        self._log, self._offsets, self._checks = log, offsets, checks

    @property
    def is_open(self) -> bool:
        """Return whether records may be written now."""
        checks, log = self._checks, self._log
        return checks.refusal is None and log.changed is None and len(checks.store_host) == V4_SIZE

    def log_end(self) -> WritableEnd:
        """Return where records may be written; it holds until something else is appended."""
        log = self._log
        return WritableEnd(log.array, log.end, log.room_end, log.base, self._offsets.ends)

    def make_room(self) -> bool:
        """Reserve more room in the last file if little is left; return whether there is more now.

        A caller that left it to the next append would serve nobody until then. If there is no more
        room, the next append begins a file, or reports what is wrong.
        """
        log, before = self._log, self._log.room_end
        if before - log.position >= _LITTLE:
            return False
        with suppress(DiskError):
            log.room_for(_LITTLE)
        return log.room_end > before

    def place(self, queue: Queue) -> int:
        """Return the place of a queue in `WritableEnd.ends`, until it is removed."""
        return self._offsets.number(queue)

    def on_remove(self, forget: Callable[[], None]) -> None:
        """Call a function when a place no longer belongs to its queue."""
        self._offsets.on_remove(forget)

    def route(self, topic: str) -> bytes | None:
        """Return the route of a topic's records, from the store's own host to queue 0.

        None if the topic must not be put to.
        """
        try:
            part = self._checks.topic(topic)
        except Refusal:
            return None
        return make_route(
            queue_id=0,
            magic=part.magic,
            part=part.data,
            longest_body=self._checks.longest_body,
            crc_size=self._checks.crc_size,
            host=self._checks.store_host,
        )

    def written(self, end: int) -> None:
        """Note records that were written, of which `WritableEnd.ends` has the next offsets.

        Args:
            end: the physical offset after the last one.
        """
        # At once: what was acknowledged must not be overwritten.
        self._log.end = end
