"""How far the log of a live store is: written, durable on this disk, confirmed, dispatched.

Upstream: `CommitLog.getConfirmOffset`, which bounds `ReputMessageService`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mqlake.store.append.put_result import PutResult
from mqlake.store.dispatch.dispatcher import Dispatcher
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.replication.copies import Copies
from mqlake.store.settings import FlushDiskType


class Watermarks:
    """Physical offsets, in bytes, at which a record begins or the log ends. For the store's thread.

    `kept` decides what slaves are sent. A put is acknowledged once it is kept and enough slaves
    have it (`copies`). `confirmed` decides what is dispatched and read. `flushed` is about this
    disk: it bounds what may be kept elsewhere as done, or removed.
    """

    def __init__(
        self, log: OwnedCommitLog, dispatcher: Dispatcher, flush: FlushDiskType, copies: Copies
    ) -> None:
        self._log, self._dispatcher, self._copies = log, dispatcher, copies
        self._is_async = flush is FlushDiskType.ASYNC_FLUSH

    @property
    def confirms_at_append(self) -> bool:
        """Return whether each record may be acknowledged as soon as it is appended."""
        return self._is_async and not self._copies.are_counted

    @property
    def min_offset(self) -> int:
        """Physical offset of the log's first byte."""
        return self._log.min_offset

    @property
    def end(self) -> int:
        """Physical offset of the next record (or a file's end, before a roll)."""
        return self._log.end

    @property
    def flushed(self) -> int:
        """Physical offset before which everything survives a power loss of this machine."""
        return self._log.flushed

    @property
    def kept(self) -> int:
        """Physical offset before which this store has done what it must to keep the log.

        Under ASYNC_FLUSH this is the log's end, under SYNC_FLUSH the durable part.
        """
        return self._log.end if self._is_async else self._log.flushed

    @property
    def confirmed(self) -> int:
        """Physical offset before which messages may be dispatched and read: at most `kept`.

        Under a controller, that is what every broker has that may be elected.
        """
        shown = self._copies.shown
        if shown is None:
            return self.kept
        # What is dispatched stays so: recovery dispatches everything that is kept.
        return max(min(self.kept, shown), min(self.dispatched, self.kept))

    @property
    def dispatched(self) -> int:
        """Physical offset before which every record has its queue entry and its index entries."""
        return self._dispatcher.position

    def is_confirmed(self, result: PutResult) -> bool:
        """Return whether an append may be acknowledged; a refused one may be answered at once."""
        if self.confirms_at_append:
            return True
        if result.end > self.kept:
            return False
        return not result.waits_for_slaves or result.end <= self._copies.confirmed

    def unconfirmed(self, results: Sequence[PutResult]) -> PutResult | None:
        """Return the append that must be confirmed before all of these are acknowledged, None if
        none must wait.

        Args:
            results: the results of appends, in their order.
        """
        if self.confirms_at_append:
            return None
        last = None
        for result in reversed(results):
            if not result.count:
                continue
            if last is None:
                last = result
            if result.waits_for_slaves:
                # Later ones that wait for no slave are durable, and on slaves, after it.
                if not last.waits_for_slaves:
                    last = replace(last, waits_for_slaves=True)
                break
        return None if last is None or self.is_confirmed(last) else last
