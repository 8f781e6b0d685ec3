"""Records that a caller writes at the end of a log itself, many in one call of a kernel.

It writes them as `mqlake.dispatch.compiled.put_sent` does, and then reports what it has written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqlake.dispatch.batch import Bytes
from mqlake.formats.host import V4_SIZE
from mqlake.store.append.checks import AppendChecks, Refusal
from mqlake.store.append.known_routes import KnownRoutes
from mqlake.store.live_settings import Current
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.queue_offsets import Queue, QueueOffsets
from mqlake.store.settings import StoreSettings


class WritableEnd(NamedTuple):
    """Where records may be written.

    Attributes:
        array: u8[n], the last file of the log.
        end: the physical offset of the next record.
        room_end: the position in that file before which records may be written.
        base: the physical offset of the file's first byte.
    """

    array: Bytes
    end: int
    room_end: int
    base: int


class OutsidePuts:
    """Lets a caller write records. For the store's thread."""

    def __init__(
        self,
        log: OwnedCommitLog,
        offsets: QueueOffsets,
        checks: AppendChecks,
        settings: Current[StoreSettings],
    ) -> None:
        self._log, self._offsets, self._checks = log, offsets, checks
        self._routes = KnownRoutes[str](checks, settings)

    @property
    def is_open(self) -> bool:
        """Return whether records may be written now."""
        checks, log = self._checks, self._log
        return checks.refusal is None and log.changed is None and len(checks.store_host) == V4_SIZE

    def log_end(self) -> WritableEnd:
        """Return where records may be written; it holds until something else is appended."""
        log = self._log
        return WritableEnd(log.array, log.end, log.room_end, log.base)

    def next_offset(self, queue: Queue) -> int:
        """Return the queue offset of a queue's next record."""
        return self._offsets.next(*queue)

    def route(self, topic: str) -> bytes | None:
        """Return the route of a topic's records, from the store's own host to queue 0.

        None if the topic must not be put to.
        """
        try:
            return self._routes.route(topic, 0)
        except Refusal:
            return None

    def written(self, end: int, queues: Iterable[tuple[Queue, int]]) -> None:
        """Note records that were written.

        Args:
            end: the physical offset after the last one.
            queues: the queues that they belong to, with the queue offsets of their next records.
        """
        # First: what was acknowledged must not be overwritten.
        self._log.end = end
        self._offsets.update(queues)
