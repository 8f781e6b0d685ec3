"""Remove what an interrupted commit of the sink appended."""

from __future__ import annotations

from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.errors import StoreError
from mqlake.spark.sink.journal import Adding, forget, read_journal
from mqlake.storage.clock import Clock
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.log.owned_log import open_owned_log
from mqlake.store.log.segments import open_log
from mqlake.store.owned_store import OwnedStore
from mqlake.store.recovery.abort_mark import mark_open
from mqlake.store.settings import StoreSettings


def roll_back(
    directory: OwnedDirectory, settings: StoreSettings, clock: Clock | None = None
) -> None:
    """Restore the store to its state before an interrupted commit; do nothing without one.

    Raises:
        StoreError: another process owns the store, or has written to it since.
        DiskError: the disk failed.
    """
    adding = read_journal(directory).adding
    if adding is None:
        return
    with directory.own(LOCK_NAME):
        adding = read_journal(directory).adding
        if adding is not None and not adding.is_taken:
            _check_ours(directory, adding)
            # Queues and index still refer to the removed messages: repair them as after a crash.
            mark_open(directory)
            log = open_owned_log(directory, settings.mapped_file_size_commit_log)
            try:
                log.recover_to(adding.start)
            finally:
                log.close()
    store = OwnedStore.open(directory, settings, clock)
    store.close()
    forget(directory, adding)


def _check_ours(directory: OwnedDirectory, adding: Adding) -> None:
    """Raise StoreError if the log has messages of others after the commit's start."""
    log = open_log(directory)
    try:
        for segment in log.segments:
            file = log.file(segment)
            if file is None or segment.end <= adding.start:
                continue
            start = max(segment.base, adding.start)
            scan = SegmentScan(
                file, segment.base, start, segment.end, exact=True, crc=False, want=Want.LOCATE
            )
            for batch in scan:
                others = batch.records["store_timestamp"] != adding.store_timestamp
                if others.any():
                    at = int(batch.records["physical_offset"][others][0])
                    raise StoreError(
                        f"{directory.describe('')}: a write was interrupted after physical "
                        f"offset {adding.start}, and another process has written at {at} "
                        "since; remove .mqlake-sink to keep all messages"
                    )
    finally:
        log.close()
