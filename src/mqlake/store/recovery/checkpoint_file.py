"""Write the checkpoint of a store that this process owns (docs/formats/checkpoint.md).

Upstream: `StoreCheckpoint`.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple, Self

from mqlake.errors import FormatError
from mqlake.formats import checkpoint
from mqlake.formats.checkpoint import Checkpoint, Checksummed, ResumePoint
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import IndexHeader
from mqlake.storage.durable import create_file
from mqlake.storage.protocol import Directory, OwnedDirectory
from mqlake.storage.read_file import read_file
from mqlake.store.dispatch.dispatcher import Dispatched, Last
from mqlake.store.index.owned_index import NOT_INDEXED, IndexState, OwnedIndex
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.snapshot import CHECKPOINT_NAME

_MORE_THAN_ANY = (1 << 63) - 1

_NOWHERE = ResumePoint(
    dialect=Dialect.V5_5,
    position=-1,
    last_record=-1,
    last_queued=-1,
    last_queued_timestamp=0,
    index_name=0,
    index_slots=NOT_INDEXED,
    index_header=IndexHeader(0, 0, 0, 0, 0, 1),
    queue_ends=0,
    queue_starts=0,
    index_files=0,
    index_first=0,
)
"""A resume point that says only that the store's queues must not be trusted."""


class Reached(NamedTuple):
    """The state of a store at one moment: the content of a checkpoint once all of it is durable."""

    position: int
    last_record: Last
    last_queued: Last
    index_state: IndexState
    queue_ends: int
    queue_starts: int


def reached(done: Dispatched, queues: OwnedQueues, index: OwnedIndex) -> Reached:
    """Return how far dispatch is."""
    return Reached(done.position, done.last_record, done.last_queued, index.state(), *queues.sums())


class FoundCheckpoint(NamedTuple):
    """The checkpoint of a store as it was found.

    Attributes:
        data: the content of the file, b"" if no part of it is plausible.
        fields: RocketMQ's fields, all zero without them.
        resume: mqlake's resume point, or None without a valid one. Its position is -1 if it only
            says that no queue is to be trusted.
        checksummed: the part of the log whose records have checksums, or None.
    """

    data: bytes = b""
    fields: Checkpoint = Checkpoint()
    resume: ResumePoint | None = None
    checksummed: Checksummed | None = None

    @property
    def distrusts_queues(self) -> bool:
        """Return whether a start was interrupted while it derived all queues again.

        If so, any queue may be incomplete.
        """
        return self.resume is not None and self.resume.queue_ends == _MORE_THAN_ANY


def find_checkpoint(directory: Directory) -> FoundCheckpoint:
    """Read the checkpoint of a store.

    Raises:
        StoreError: the file exists but cannot be read.
    """
    data = read_file(directory, CHECKPOINT_NAME, checkpoint.SIZE) or b""
    try:
        fields = checkpoint.decode(data)
        resume = checkpoint.decode_resume(data)
        return FoundCheckpoint(data, fields, resume, checkpoint.decode_checksummed(data))
    except FormatError:
        return FoundCheckpoint()


class CheckpointFile:
    """The checkpoint of a store.

    Args:
        found: the file as `find_checkpoint` returns it.
        dialect: decides which fields are written.

    Attributes:
        found: RocketMQ's fields when it was opened, all zero without a checkpoint.
        resume: mqlake's resume point at that time, or None without a valid one.
        checksummed: the part of the log whose records have checksums, or None: as found, and
            as it is written.
        position: physical offset before which everything is durable, according to the file; a
            record starts there. The log must keep the file that contains it.
    """

    def __init__(
        self, directory: OwnedDirectory, found: FoundCheckpoint, dialect: Dialect = Dialect.V5_5
    ) -> None:
        # The content of the file, if it is known.
        self._data, self.found, self.resume, self.checksummed = found
        self._is_whole = len(self._data) == checkpoint.SIZE
        self._dialect = dialect
        self.position = 0
        self._last_turn = self._written_turn = 0
        self._writing = Lock()
        self._directory = directory

    @classmethod
    def open(cls, directory: OwnedDirectory) -> Self:
        """Return the checkpoint of a directory, to be written.

        Raises:
            StoreError: the file exists but cannot be read.
        """
        return cls(directory, find_checkpoint(directory))

    def certify(self, checksummed: Checksummed | None) -> None:
        """Let the next write say which part of the log has checksums."""
        self.checksummed = checksummed

    def next_turn(self) -> int:
        """Return the turn of a write of the store's current state."""
        self._last_turn += 1
        return self._last_turn

    def write(
        self, reached: Reached, turn: int | None = None, *, is_clean_stop: bool = False
    ) -> None:
        """Write the store's state. Returns once it is durable.

        Everything that the state refers to must be durable already.

        May be called in several threads: a state with an earlier turn than the written one is
        older, and is not written.

        Raises:
            DiskError: the disk failed.
        """
        turn = self.next_turn() if turn is None else turn
        with self._writing:
            if turn > self._written_turn:
                self._write_reached(reached, is_clean_stop=is_clean_stop)
                self._written_turn = turn

    def _write_reached(self, reached: Reached, *, is_clean_stop: bool) -> None:
        fields = self._fields(reached, is_clean_stop=is_clean_stop)
        checksummed = self.checksummed
        if is_clean_stop and checksummed is not None:
            # Anything after it at the next start was written by another program.
            checksummed = checksummed._replace(end=reached.position)
        self._write(fields, self._resume(reached), checksummed)
        self.position = reached.position

    def distrust_queues(self) -> None:
        """Make the next start derive all queues again, whatever it finds of them.

        Returns once that is durable.

        Raises:
            DiskError: the disk failed.
        """
        resume = self.resume or _NOWHERE._replace(dialect=self._dialect)
        self.resume = resume._replace(queue_ends=_MORE_THAN_ANY)
        self._write(self.found, self.resume, self.checksummed)

    def distrust_index(self, until: int, first: int) -> None:
        """Make the next start, RocketMQ's too, derive later index entries again.

        Returns once that is durable. Does nothing if the checkpoint vouches for no files.

        Args:
            until: files that end at this time or later are not vouched for, milliseconds.
            first: physical offset of the first record whose keys are later.

        Raises:
            DiskError: the disk failed.
        """
        if self.resume is None and self.found.index_msg_timestamp <= 0:
            return
        before = min(self.found.index_msg_timestamp, max(0, until - 1))
        logics = min(self.found.logics_msg_timestamp, before)
        # 0 would mean that the offset is missing; 1 is in the same file.
        offset = min(self.found.logics_physical_offset, max(1, first))
        self.found = self.found._replace(
            index_msg_timestamp=before,
            logics_msg_timestamp=logics,
            logics_physical_offset=offset,
        )
        if self.resume is not None:
            self.resume = self.resume._replace(index_slots=NOT_INDEXED)
        self._write(self.found, self.resume, self.checksummed)

    def _write(
        self, fields: Checkpoint, resume: ResumePoint | None, checksummed: Checksummed | None
    ) -> None:
        data = checkpoint.encode(fields, self._dialect, resume, checksummed)
        if data == self._data:
            return
        if self._is_whole:
            file = self._directory.open_writable(CHECKPOINT_NAME)
        else:
            file = create_file(self._directory, CHECKPOINT_NAME, checkpoint.SIZE)
            self._is_whole = True
        self._data = b""  # A failed write may have been done in part.
        try:
            file.write(0, data)
            file.sync()
        finally:
            file.close()
        self._data = data

    def _resume(self, reached: Reached) -> ResumePoint:
        return ResumePoint(
            dialect=self._dialect,
            position=reached.position,
            last_record=reached.last_record.physical_offset,
            last_queued=reached.last_queued.physical_offset,
            last_queued_timestamp=reached.last_queued.store_timestamp,
            index_name=int(reached.index_state.name or 0),
            index_slots=reached.index_state.slots,
            index_header=reached.index_state.header,
            queue_ends=reached.queue_ends,
            queue_starts=reached.queue_starts,
            index_files=len(reached.index_state.names),
            index_first=int(next(iter(reached.index_state.names), 0)),
        )

    def _fields(self, reached: Reached, *, is_clean_stop: bool) -> Checkpoint:
        """Return RocketMQ's fields.

        After a crash RocketMQ deletes each index file that ends after the index timestamp, which is
        the end of the last full one, and dispatches again from the log file that contains `logics`.
        So that no key is lost then, `logics` is the first record of the file that would be deleted.
        After a clean stop RocketMQ deletes nothing.
        """
        queued = reached.last_queued
        logics = Last(max(0, queued.physical_offset), queued.store_timestamp)
        header = reached.index_state.header
        if not is_clean_stop and header.index_count > 1 and not reached.index_state.is_full:
            # 0 would mean that the offset is missing; 1 is in the same file.
            offset = max(1, header.begin_physical_offset)
            logics = Last(
                min(logics.physical_offset, offset),
                min(logics.store_timestamp, header.begin_timestamp),
            )
        return Checkpoint(
            physic_msg_timestamp=reached.last_record.store_timestamp,
            logics_msg_timestamp=logics.store_timestamp,
            index_msg_timestamp=reached.index_state.full_until,
            master_flushed_offset=self.found.master_flushed_offset,
            confirm_physical_offset=max(0, reached.last_record.physical_offset),
            logics_physical_offset=logics.physical_offset,
        )
