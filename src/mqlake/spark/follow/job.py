"""Follow a store into a lake table, exactly once (docs/follow.md)."""

from __future__ import annotations

import threading

import msgspec

from mqlake.jobs.local import Progress
from mqlake.spark.follow.identity import held
from mqlake.spark.follow.micro_batch import MicroBatches
from mqlake.spark.follow.options import FollowOptions, Format
from mqlake.spark.follow.query import Query, require_classic
from mqlake.spark.follow.table import open_table
from mqlake.spark.session import Session


class FollowReport(msgspec.Struct, frozen=True, rename="camel"):
    """What one run of `follow` brought into the table.

    Attributes:
        batches: micro-batches with messages.
        files: data files that were written, before small ones were merged.
        bytes_written: their size.
        files_merged: small files whose rows are in others now.
    """

    store: str
    output: str
    format: str
    checkpoint: str
    batches: int
    messages: int
    files: int
    bytes_written: int
    files_merged: int


def follow(
    session: Session,
    options: FollowOptions,
    stop: threading.Event | None = None,
    progress: Progress | None = None,
) -> FollowReport:
    """Bring the messages of a store into a table, as they come; return when that is over.

    Args:
        stop: set it to end between two micro-batches.
        progress: told how many bytes of the log are in the table, of how many.

    Raises:
        JobError: the table cannot be opened or written, or the checkpoint is not that of this
            store and table.
        StoreError, FormatError: the store cannot be read, or an option of the source is wrong.
    """
    require_classic(session.spark)
    with held(options) as follower:
        waits = options.format is Format.PARQUET
        every = 1 if waits else options.compact_every
        batches = MicroBatches(open_table(options), session.engine, follower, every)
        stop = stop or threading.Event()
        idle = batches.compact if waits else None
        Query(session.spark, options, batches.take, stop, progress, idle).run()
        if waits or (options.once and every):
            batches.compact(is_last=True)
    totals = batches.totals
    return FollowReport(
        str(options.store),
        str(options.out),
        options.format.value,
        str(options.checkpoint),
        totals.batches,
        totals.messages,
        totals.files,
        totals.bytes_written,
        totals.files_merged,
    )
