"""Keep the derived files of a commit log up to date while another program writes the log.

For stores whose log arrives by other means than a put: copied, replicated, restored. Queues, index
and checkpoint are those of a live store; the log itself is only read. Upstream:
`ReputMessageService`.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from mqlake.storage.clock import Clock, SystemClock
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.log.segments import CommitLog, open_log
from mqlake.store.recovery.abort_mark import mark_closed
from mqlake.store.recovery.checkpoint_file import reached
from mqlake.store.recovery.recovery import Derived, Progress, RecoveryReport, recover_derived
from mqlake.store.settings import StoreSettings


class Derivation:
    """The derived files of a store, owned by this process. For one thread.

    Attributes:
        report: what was missing or wrong when it was opened, and is repaired now.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        log: CommitLog,
        settings: StoreSettings,
        found: Derived,
        held: ExitStack,
    ) -> None:
        """Args: `held`: closed when the directory is released."""
        self.report: RecoveryReport = found.report
        self._directory, self._log, self._found, self._held = directory, log, found, held
        self._dispatcher = found.dispatcher(log, settings.message_delay_level)

    @classmethod
    def open(
        cls,
        directory: OwnedDirectory,
        settings: StoreSettings | None = None,
        clock: Clock | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Take ownership of the directory, and derive files up to the current end of the log.

        Raises:
            StoreError: another process owns it, or its files cannot be opened.
            DiskError: the disk failed.
        """
        settings, clock = settings or StoreSettings(), clock or SystemClock()
        held = ExitStack()
        try:
            held.enter_context(directory.own(LOCK_NAME))
            log = open_log(directory)
            held.callback(log.close)
            found = recover_derived(directory, settings, clock, log, progress)
            return cls(directory, log, settings, found, held)
        except BaseException:
            held.close()
            raise

    @property
    def position(self) -> int:
        """Physical offset before which all records have their entries."""
        return self._dispatcher.position

    @property
    def entries(self) -> int:
        """The number of queue entries that were written since it was opened, and by opening it."""
        return self._dispatcher.entries

    def advance(self, limit: int) -> int:
        """Dispatch all records before `limit`, which is the end of one; return how many.

        When it returns, they are durable, and the checkpoint records that.

        Raises:
            DiskError: the disk failed.
            StoreError: the next bytes of the log are not a record.
        """
        if limit <= self.position:
            return 0
        found = self._found
        self._log.refresh()
        found.queues.begin_at(self._log.min_offset)
        count = self._dispatcher.run(limit)
        found.queues.files.sync()
        found.index.sync()
        if found.light is not None:
            found.light.pending_sync().complete()
        found.checkpoint.write(reached(self._dispatcher.done, found.queues, found.index))
        return count

    def close(self) -> None:
        """Mark a clean stop, and release the directory.

        Raises:
            DiskError: the disk failed; the next start recovers.
        """
        try:
            state = reached(self._dispatcher.done, self._found.queues, self._found.index)
            self._found.checkpoint.write(state, is_clean_stop=True)
            mark_closed(self._directory)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        with self._held:
            self._found.queues.files.close()
            self._found.index.close()
            if self._found.light is not None:
                self._found.light.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        if kind is None:
            self.close()
        else:
            self._let_go()
