"""Append staged records to the store, in the driver, when all tasks are done.

Each commit is in the store as a whole, or has no trace once the next one begins (`journal`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.kernel import load
from mqlake.dispatch.writing.encode import state_crcs
from mqlake.errors import DiskError, MqlakeError, StoreError
from mqlake.formats import record
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.spark.sink.journal import (
    Adding,
    Journal,
    forget,
    read_journal,
    restore_begun,
    write_begun,
    write_journal,
)
from mqlake.spark.sink.roll_back import roll_back
from mqlake.spark.sink.staged import Frame, StagedFile, read_frames
from mqlake.storage.clock import Clock, SystemClock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings

_SYSTEM_TOPICS = "RMQ_SYS_"

_log = logging.getLogger(__name__)


class SinkEpoch(NamedTuple):
    """A micro-batch: the id of the query, and the batch's number."""

    query: str
    number: int


def commit(
    directory: OwnedDirectory,
    settings: StoreSettings,
    staged: Path,
    parts: Sequence[StagedFile],
    epoch: SinkEpoch | None,
    clock: Clock | None = None,
) -> int:
    """Append the records of all parts to the store; return how many.

    An epoch that the store already has is skipped. Returns once all messages are durable. If the
    store cannot be closed cleanly after that, the next commit repairs it.

    Args:
        staged: the directory of the parts.
        epoch: None in batch queries, which are not repeated.

    Raises:
        StoreError: another process owns the store, or the staged files cannot be read.
        DiskError: the disk failed. What was appended is removed before the next commit.
    """
    clock = clock or SystemClock()
    roll_back(directory, settings, clock)
    if epoch is not None and read_journal(directory).has(*epoch):
        return 0
    store = OwnedStore.open(directory, settings, clock)
    try:
        count = _add_once(directory, store, staged, parts, epoch)
    except BaseException:
        store.abandon()
        raise
    _close(directory, store)
    return count


def _close(directory: OwnedDirectory, store: OwnedStore) -> None:
    """Close a store that has all messages, and record that it is closed.

    A failure is only logged: if it were raised, a batch query would be run again, and its messages
    would be in the store twice. The journal then makes the next commit repair the store.
    """
    try:
        adding = read_journal(directory).adding
        store.close()
        forget(directory, adding)
    except MqlakeError as error:
        _log.warning(
            "%s: all messages are stored, but the store was not closed cleanly; "
            "the next write or start repairs it: %s",
            directory.describe(),
            error,
        )


def _add_once(
    directory: OwnedDirectory,
    store: OwnedStore,
    staged: Path,
    parts: Sequence[StagedFile],
    epoch: SinkEpoch | None,
) -> int:
    journal = read_journal(directory)  # No other process writes the store from here on.
    if journal.adding is not None:
        where = directory.describe()
        raise StoreError(f"{where}: another write was interrupted just now; run this one again")
    if epoch is not None and journal.has(*epoch):
        return 0
    return _add(directory, store, journal, staged, parts, epoch)


def _add(
    directory: OwnedDirectory,
    store: OwnedStore,
    journal: Journal,
    staged: Path,
    parts: Sequence[StagedFile],
    epoch: SinkEpoch | None,
) -> int:
    adding = Adding(store.log.end, store.clock.milliseconds())
    begun = Journal(journal.epochs, adding)
    write_begun(directory, begun)
    for part in parts:
        _append_part(store, staged, part, adding.store_timestamp)
        _name_topics(store, part)
    store.durability.sync_log()
    store.config.persist()
    epochs = journal.epochs if epoch is None else {**journal.epochs, epoch.query: epoch.number}
    taken = Adding(adding.start, adding.store_timestamp, is_taken=True)
    try:
        write_journal(directory, Journal(epochs, taken))
    except DiskError as error:
        # The new journal may be in place without being durable. The messages of a commit that
        # fails must not count as stored, or a repeated batch query would store them twice.
        _restore(directory, begun, error)
        raise
    return sum(part.rows for part in parts)


def _restore(directory: OwnedDirectory, begun: Journal, reason: DiskError) -> None:
    """Let a commit that fails be one that has only begun.

    Raises:
        StoreError: that is refused, too, and the messages count as stored.
    """
    with suppress(DiskError):
        restore_begun(directory)
    if read_journal(directory) != begun:
        raise StoreError(
            f"{directory.describe()}: all messages are stored, but not certainly durable: a query"
            f" that is run again stores them twice: {reason}"
        ) from reason


def _append_part(store: OwnedStore, staged: Path, part: StagedFile, now: int) -> None:
    first = np.array([store.offsets.next(*queue[:2]) for queue in part.queues], np.int64)
    for frame in read_frames(staged, part):
        _append(store, frame, first, now)
        store.log.prepare_next()
        store.dispatcher.run(store.log.end)
    for topic, queue_id, count in part.queues:
        store.offsets.set(topic, queue_id, store.offsets.next(topic, queue_id) + count)


def _append(store: OwnedStore, frame: Frame, first: Longs, now: int) -> None:
    """Append a frame, in pieces that fit into the remaining space of a file."""
    log, (rows, data) = store.log, frame
    ends = np.cumsum(rows["size"], dtype=np.int64)
    starts = ends - rows["size"]
    queued = rows["queue"] >= 0
    offsets = rows["queue_offset"][queued] + first[rows["queue"][queued]]
    _set(data, starts[queued] + record.QUEUE_OFFSET_AT, offsets)
    _set(data, starts + rows["store_timestamp_at"], np.full(len(rows), now, np.int64))
    row = 0
    while row < len(rows):
        begin = int(starts[row])
        room = log.room_for(int(ends[-1]) - begin)
        reached = int(np.searchsorted(ends, begin + room, "right"))
        if reached == row:
            log.make_room(int(rows["size"][row]))
            continue
        places = starts[row:reached]
        _set(data, places + record.PHYSICAL_OFFSET_AT, places + (log.end - begin))
        if store.settings.enabled_append_prop_crc:
            sizes = rows["size"][row:reached].astype(np.int64)
            state_crcs(data, np.ascontiguousarray(places), sizes, load())
        log.append(data[begin : int(ends[reached - 1])].data)
        row = reached


def _set(data: Bytes, at: Longs, numbers: Longs) -> None:
    """Write big-endian 64-bit numbers at positions."""
    data[at[:, None] + np.arange(8)] = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)


def _name_topics(store: OwnedStore, part: StagedFile) -> None:
    """Make the topics known to a broker, with as many queues as they have."""
    topics = store.config.topics
    for name, queue_id, _ in part.queues:
        if name == SCHEDULE_TOPIC or name.startswith(_SYSTEM_TOPICS):
            continue
        topic = topics.ensure(name, queue_id + 1)
        if min(topic.read_queue_nums, topic.write_queue_nums) <= queue_id:
            more = {
                field: max(getattr(topic, field), queue_id + 1)
                for field in ("read_queue_nums", "write_queue_nums")
            }
            topics.put(msgspec.structs.replace(topic, **more))
