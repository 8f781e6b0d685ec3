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
from mqlake.store.dispatch.dispatcher import Dispatcher, Last
from mqlake.store.index.owned_index import NOT_INDEXED, IndexState, OwnedIndex
from mqlake.store.snapshot import CHECKPOINT_NAME

_MORE_THAN_ANY = (1 << 63) - 1

_NOWHERE = ResumePoint(
    Dialect.V5_5, -1, -1, -1, 0, 0, NOT_INDEXED, IndexHeader(0, 0, 0, 0, 0, 1), 0, 0, 0, 0
)
"""What stands for the resume point of a store that has none, and no queues to be believed."""


class Reached(NamedTuple):
    """How far a store is at one moment: what a checkpoint says once all of it is on the disk."""

    position: int
    last_record: Last
    last_queued: Last
    index_state: IndexState
    queue_ends: int
    queue_starts: int


def reached(dispatcher: Dispatcher, index: OwnedIndex) -> Reached:
    """Return how far dispatch is."""
    return Reached(
        dispatcher.position,
        dispatcher.last_record,
        dispatcher.last_queued,
        index.state(),
        *dispatcher.queue_sums(),
    )


class FoundCheckpoint(NamedTuple):
    """The checkpoint of a store as it was found.

    Attributes:
        data: what is in the file, b"" if nothing of it can be believed.
        fields: what RocketMQ goes by, all zero if there is none.
        resume: mqlake's resume point, None if there is none that holds; its position is -1 where it
            only says that no queue is to be believed.
        checksummed: where records have checksums, None if nowhere.
    """

    data: bytes = b""
    fields: Checkpoint = Checkpoint()
    resume: ResumePoint | None = None
    checksummed: Checksummed | None = None

    @property
    def distrusts_queues(self) -> bool:
        """Whether a start that derived all queues again was cut off, so that none may be whole."""
        return self.resume is not None and self.resume.queue_ends == _MORE_THAN_ANY


def find_checkpoint(directory: Directory) -> FoundCheckpoint:
    """Read the checkpoint of a store.

    Raises:
        StoreError: the file is there and cannot be read.
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

    Attributes:
        found: RocketMQ's fields when it was opened, all zero if there was no checkpoint.
        resume: mqlake's resume point then, None if there was none that held.
        checksummed: where records have checksums, None if nowhere: as it was found, and as it is
            written.
        dialect: whose fields are written.
        position: physical offset before which all is on the disk, says the file; a record starts
            there. The log must keep the file in which that is.
    """

    def __init__(self, directory: OwnedDirectory, found: FoundCheckpoint) -> None:
        # What the file holds, as far as that is known.
        self._data, self.found, self.resume, self.checksummed = found
        self._is_whole = len(self._data) == checkpoint.SIZE
        self.dialect = Dialect.V5_5
        self.position = 0
        self._last_turn = self._written_turn = 0
        self._writing = Lock()
        self._directory = directory

    @classmethod
    def open(cls, directory: OwnedDirectory) -> Self:
        """Return the checkpoint of a directory, to be written.

        Raises:
            StoreError: the file is there and cannot be read.
        """
        return cls(directory, find_checkpoint(directory))

    def next_turn(self) -> int:
        """Return the turn of a write that is to be made of what the store has reached now."""
        self._last_turn += 1
        return self._last_turn

    def write(
        self, reached: Reached, turn: int | None = None, *, is_clean_stop: bool = False
    ) -> None:
        """Say how far the store is. Returns once that is on the disk; all it says must be.

        May be called in several threads: what has an earlier turn than what was written is older,
        and not written.

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
            # Whatever is behind it at the next start, somebody else has written.
            checksummed = checksummed._replace(end=reached.position)
        self._write(fields, self._resume(reached), checksummed)
        self.position = reached.position

    def distrust_queues(self) -> None:
        """Let the next start derive all queues again, whatever it finds of them.

        Returns once that is on the disk.

        Raises:
            DiskError: the disk failed.
        """
        resume = self.resume or _NOWHERE._replace(dialect=self.dialect)
        self.resume = resume._replace(queue_ends=_MORE_THAN_ANY)
        self._write(self.found, self.resume, self.checksummed)

    def distrust_index(self, until: int, first: int) -> None:
        """Let the next start, RocketMQ's too, make again what comes behind in the index.

        Returns once that is on the disk. Does nothing where the checkpoint vouches for no files.

        Args:
            until: no file is vouched for that ends at this time or later, milliseconds.
            first: physical offset of the first record whose keys come behind.

        Raises:
            DiskError: the disk failed.
        """
        if self.resume is None and self.found.index_msg_timestamp <= 0:
            return
        before = min(self.found.index_msg_timestamp, max(0, until - 1))
        logics = min(self.found.logics_msg_timestamp, before)
        # 0 would say that there is no such offset; 1 is in the same file.
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
        data = checkpoint.encode(fields, self.dialect, resume, checksummed)
        if data == self._data:
            return
        if self._is_whole:
            file = self._directory.open_writable(CHECKPOINT_NAME)
        else:
            file = create_file(self._directory, CHECKPOINT_NAME, checkpoint.SIZE)
            self._is_whole = True
        self._data = b""  # a write that fails may have been done in part
        try:
            file.write(0, data)
            file.sync()
        finally:
            file.close()
        self._data = data

    def _resume(self, reached: Reached) -> ResumePoint:
        return ResumePoint(
            self.dialect,
            reached.position,
            reached.last_record.physical_offset,
            reached.last_queued.physical_offset,
            reached.last_queued.store_timestamp,
            int(reached.index_state.name or 0),
            reached.index_state.slots,
            reached.index_state.header,
            reached.queue_ends,
            reached.queue_starts,
            len(reached.index_state.names),
            int(next(iter(reached.index_state.names), 0)),
        )

    def _fields(self, reached: Reached, *, is_clean_stop: bool) -> Checkpoint:
        """Return the fields that RocketMQ goes by.

        After a crash it deletes each index file that ends after the index timestamp, which is the
        end of the last full one, and dispatches again from the log file in which `logics` lies.
        So that no key is lost then, `logics` goes back to the first record of the file that would
        be deleted. After a clean stop nothing is.
        """
        queued = reached.last_queued
        logics = Last(max(0, queued.physical_offset), queued.store_timestamp)
        header = reached.index_state.header
        if not is_clean_stop and header.index_count > 1 and not reached.index_state.is_full:
            # 0 would say that there is no such offset; 1 is in the same file.
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
