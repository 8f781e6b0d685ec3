"""Append runs of plain messages of one queue, each run by one call of a compiled function.

msgspec packs all messages of a call at once, which takes a tenth of a microsecond for each. Reading
their fields in Python would take several times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import repeat

import numpy as np

from mqlake.dispatch.writing.plain_put import load_run, pack
from mqlake.errors import DiskError
from mqlake.formats.host import V4_SIZE
from mqlake.store.append.checks import AppendChecks
from mqlake.store.append.many import MOST_BESIDES
from mqlake.store.append.message import Message
from mqlake.store.append.plain_puts import NOT_PLAIN, QueueRoutes
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.queue_offsets import QueueOffsets

_LEAST = 8
"""Messages of a run: shorter ones are put faster together with those of other queues."""

_MOST = 1024
"""Messages of a run."""

_MOST_BYTES = 1 << 20
"""Bytes of a run's records."""


class PlainRuns:
    """Put runs of plain messages at the end of a log. For one thread."""

    def __init__(
        self, log: OwnedCommitLog, offsets: QueueOffsets, checks: AppendChecks, routes: QueueRoutes
    ) -> None:
        self._log, self._table = log, offsets.table
        self._checks, self._routes = checks, routes
        self._host = checks.store_host
        self._kernel = load_run() if len(self._host) == V4_SIZE else None
        self._scratch = np.empty(0, np.uint8)
        self._rows = np.empty((2, _MOST), np.int64)

    def put(self, messages: Sequence[Message], now: int) -> list[PutResult]:
        """Append the first of these messages, as long as they are in runs; return their results.

        A run that the disk refuses changes nothing: who puts its messages next reports it.
        """
        results: list[PutResult] = []
        if self._kernel is None or not _may_be_plain(messages):
            return results
        try:
            packed = pack(messages)
        except (TypeError, ValueError, OverflowError):  # Who puts them one by one says why.
            return results
        if not len(self._scratch):
            self._scratch = np.empty(_MOST_BYTES, np.uint8)
        count, at = len(messages), 0
        while len(results) < count:
            before = len(results)
            with suppress(DiskError):
                at = self._put_run(messages, packed, at, now, results)
            if len(results) - before < _LEAST:
                break
        return results

    def _put_run(
        self,
        messages: Sequence[Message],
        packed: bytes,
        at: int,
        now: int,
        results: list[PutResult],
    ) -> int:
        """Append the messages of one queue that come next; return the position of those after.

        Args:
            at: their position in `packed`.
            results: of the messages before, to which theirs are added.

        Raises:
            DiskError: the disk refused the run, or its file; nothing has changed.
        """
        kernel, log, first = self._kernel, self._log, messages[len(results)]
        assert kernel is not None
        try:
            queue = first.topic, first.queue_id
            route = self._routes[queue]
        except NOT_PLAIN:
            return at
        left = len(messages) - len(results)
        room = log.room_for(min(len(packed) - at + left * MOST_BESIDES, _MOST_BYTES))
        rows = self._rows
        queue_offset = self._table.get(queue, 0)
        count, at, end = kernel(
            self._scratch,
            room,
            log.end,
            packed,
            at,
            min(left, _MOST),
            route,
            queue_offset,
            now,
            rows,
        )
        if count:
            log.append(self._scratch[:end].data)
            self._table[queue] = queue_offset + count
            results += map(
                PutResult,
                repeat(PutStatus.PUT_OK),
                *rows[:, :count].tolist(),
                range(queue_offset, queue_offset + count),
                repeat(now),
                repeat(1),
                repeat(self._host),
            )
        return at


def _may_be_plain(messages: Sequence[Message]) -> bool:
    """Return whether the first message may be plain: most calls bring messages of one kind."""
    try:
        first = messages[0]
        is_other = first.properties or first.born_host or first.encoded_properties is not None
    except (AttributeError, IndexError):
        return False
    return not is_other
