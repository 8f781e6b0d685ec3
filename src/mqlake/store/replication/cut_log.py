"""Cut a commit log that is not open. Opening it derives queues and index again."""

from __future__ import annotations

import logging

from mqlake.errors import StoreError
from mqlake.storage.clock import Clock
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.log import cut_off
from mqlake.store.log.owned_log import open_owned_log
from mqlake.store.recovery.abort_mark import mark_open

_log = logging.getLogger(__name__)


def cut_log(directory: OwnedDirectory, end: int, file_size: int, clock: Clock) -> None:
    """Let a closed store's log end at a physical offset; keep the valid records after it aside.

    It may be interrupted at any moment, and called again. The store then counts as crashed.

    Args:
        end: physical offset at which a record begins, or the log ends.
        file_size: bytes of a file of the log.

    Raises:
        StoreError: the log does not have that offset, or the store is open.
        DiskError: the disk failed, or has no room for the records that are kept aside.
    """
    with directory.own(LOCK_NAME):
        log = open_owned_log(directory, file_size)
        try:
            if not log.min_offset <= end <= log.limit:
                where = f"[{log.min_offset}, {log.limit})"
                raise StoreError(
                    f"{directory.describe()}: the log has {where}, and cannot be cut at {end}"
                )
            mark_open(directory)
            for part in cut_off.keep(directory, log, end, clock.milliseconds()):
                _log.warning(
                    "%s: the log is cut at physical offset %d: another master's log differs after"
                    " it; %d records after it are kept in %s for fileReservedTime",
                    directory.describe(),
                    end,
                    part.records,
                    part.path,
                )
            log.recover_to(end)
        finally:
            log.close()
