"""Append plain messages, each by one call of a compiled function (docs/live-store.md).

A plain message has no properties besides keys and tags, which are ASCII, and comes from the store's
own host. Nearly all that a program puts into its own store is plain. `Appender` puts the others,
and refuses those that are to be refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mqlake.dispatch.writing.plain_put import REFUSED, load_put
from mqlake.formats.host import V4_SIZE
from mqlake.storage.clock import Clock
from mqlake.store.append.checks import AppendChecks, Refusal
from mqlake.store.append.known_routes import KnownRoutes
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.queue_offsets import QueueOffsets

_OK = PutStatus.PUT_OK
# Maximum size of a plain message's record, in bytes.
_MOST_BYTES = 64 << 10
_LARGEST_QUEUE_ID = (1 << 31) - 1
# Raised for the route of a message that is not plain.
NOT_PLAIN = (Refusal, AttributeError, TypeError, OverflowError)


class QueueRoutes(KnownRoutes[tuple[str, int]]):
    """Routes by topic and queue id."""

    def make(self, key: tuple[str, int]) -> bytes:
        topic, queue_id = key
        if type(topic) is not str or not 0 <= queue_id <= _LARGEST_QUEUE_ID:
            raise TypeError
        return self.route(topic, queue_id)


class PlainPuts:
    """Put plain messages at the end of a log. For one thread."""

    def __init__(
        self,
        log: OwnedCommitLog,
        offsets: QueueOffsets,
        checks: AppendChecks,
        routes: QueueRoutes,
        clock: Clock,
    ) -> None:
        self._log, self._table, self._now = log, offsets.table, clock.milliseconds
        self._checks, self._routes = checks, routes
        self._host = checks.store_host
        self._scratch = np.empty(_MOST_BYTES, np.uint8)
        self._kernel = load_put() if len(self._host) == V4_SIZE else None

    def put(self, message: Message) -> PutResult | None:
        """Append a message; None if nothing was appended: `Appender` puts it, or refuses it."""
        try:
            if (
                message.properties
                or message.encoded_properties is not None
                or message.born_host
                or message.delay_level
                or message.prepared_transaction_offset
            ):
                return None
            return self.put_fields(
                message.topic,
                message.body,
                message.tags,
                message.keys,
                message.queue_id,
                message.flag,
                flags=message.sys_flag,
                born_timestamp=message.born_timestamp,
                reconsume_times=message.reconsume_times,
            )
        except AttributeError:
            return None

    def put_fields(
        self,
        topic: str,
        body: bytes,
        tags: str | None,
        keys: str | Sequence[str],
        queue_id: int,
        flag: int = 0,
        flags: int = 0,
        born_timestamp: int = 0,
        reconsume_times: int = 0,
    ) -> PutResult | None:
        """Append the message with these fields; None as `put`.

        Args:
            flags: the system flag.
        """
        kernel, log = self._kernel, self._log
        if kernel is None or self._checks.refusal is not None:
            return None
        tags, keys = tags or "", keys or ""
        if type(body) is not bytes or type(keys) is not str or type(tags) is not str:
            return None
        queue, table, end, base = (topic, queue_id), self._table, log.end, log.base
        try:
            # Only integers can be joined so: the function would round other numbers.
            _ = queue_id | flag | flags | born_timestamp | reconsume_times
            queue_offset, now = table.get(queue, 0), self._now()
            at = end - base
            size = kernel(
                log.array,
                at,
                log.room_end,
                base,
                self._scratch,
                self._routes[queue],
                queue_offset,
                now,
                body,
                keys,
                tags,
                flag,
                flags,
                born_timestamp,
                reconsume_times,
            )
        except NOT_PLAIN:
            return None
        if size == REFUSED:
            return None
        if log.changed is not None:
            # In this order, which the function keeps: the first record's size comes last.
            log.changed(at + 4, size - 4)
            log.changed(at, 4)
        log.end = end + size
        table[queue] = queue_offset + 1
        return PutResult(_OK, end, size, queue_offset, now, 1, store_host=self._host)
