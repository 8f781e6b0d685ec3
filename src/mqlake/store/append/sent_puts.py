"""Append messages of clients, each by one call of a compiled function (docs/live-store.md).

Kernels of the broker find such a message in received data: where its body is, its properties as
they are stored, and the fields of its record. `Appender` puts all others.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.writing.puts import REFUSED, PutSent, load_sent
from mqlake.formats.host import V4_SIZE
from mqlake.storage.clock import Clock
from mqlake.store.append.checks import AppendChecks, Refusal, illegal
from mqlake.store.append.known_routes import KnownRoutes
from mqlake.store.live_settings import Current
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.settings import StoreSettings

_MOST_BYTES = 64 << 10
"""Maximum size of such a message's record."""

Placed = tuple[int, int, int]
"""The physical offset of a record, its queue offset, and its store timestamp in milliseconds."""


class SentRoutes(KnownRoutes[tuple[str, int, str]]):
    """Routes of one client, by topic, queue id and address."""

    def make(self, key: tuple[str, int, str]) -> bytes:
        topic, queue_id, born_host = key
        sender = self.checks.sender(born_host)
        if len(sender.host) != V4_SIZE:
            raise illegal("the function writes IPv4 addresses only")
        return self.route(topic, queue_id, sender.host)


class SentPuts:
    """Put messages of clients at the end of a log. For one thread."""

    def __init__(
        self,
        log: OwnedCommitLog,
        offsets: QueueOffsets,
        checks: AppendChecks,
        settings: Current[StoreSettings],
        clock: Clock,
    ) -> None:
        self._log, self._offsets, self._now = log, offsets, clock.milliseconds
        self._checks, self._routes = checks, SentRoutes(checks, settings)
        self._scratch = np.empty(_MOST_BYTES, np.uint8)

    @cached_property
    def _kernel(self) -> PutSent | None:
        # Loaded when the first message comes: a store that no broker serves never needs it.
        return load_sent() if len(self._checks.store_host) == V4_SIZE else None

    def put(
        self,
        topic: str,
        queue_id: int,
        born_host: str,
        data: bytes,
        properties: Bytes,
        numbers: Longs,
    ) -> Placed | None:
        """Append a message; None if nothing was appended: `Appender` puts it, or refuses it.

        Args:
            queue_id: of a queue that the topic has.
            data, properties, numbers: as `mqlake.dispatch.writing.puts.PutSent` says.
        """
        kernel, log = self._kernel, self._log
        if kernel is None or self._checks.refusal is not None:
            return None
        try:
            route = self._routes[topic, queue_id, born_host]
        except Refusal:
            return None
        end, base = log.end, log.base
        queue_offset, now = self._offsets.next(topic, queue_id), self._now()
        at = end - base
        size = kernel(
            log.array,
            at,
            log.room_end,
            base,
            self._scratch,
            route,
            queue_offset,
            now,
            data,
            properties,
            numbers,
        )
        if size == REFUSED:
            return None
        if log.changed is not None:
            # In this order, which the function keeps: the first record's size comes last.
            log.changed(at + 4, size - 4)
            log.changed(at, 4)
        log.end = end + size
        self._offsets.set(topic, queue_id, queue_offset + 1)
        return end, queue_offset, now
