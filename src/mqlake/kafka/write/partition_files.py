"""The files of a partition that this process writes, except those of its segments."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from mqlake.errors import SyncError
from mqlake.formats.kafka import checkpoint_file, producer_snapshot
from mqlake.formats.kafka.checkpoint_file import LeaderEpoch
from mqlake.formats.kafka.file_name import Kind, State, file_name
from mqlake.kafka.files.lazy_file import read_whole
from mqlake.kafka.log.segment import LogSegment
from mqlake.kafka.log.segment_files import sort_files
from mqlake.kafka.state.producer_state import ProducerState
from mqlake.storage.durable import make_directories, replace_file
from mqlake.storage.protocol import OwnedDirectory

_TEMPORARY = ".tmp"


class PartitionFiles:
    """The directory of a partition, created if it is missing.

    Attributes:
        directory, path: the directory that contains it, and its path in there.
        name: the directory, for messages.
        failure: the first failed sync. Bytes that are read after it may never reach the disk.

    Raises:
        DiskError: the directory cannot be created.
    """

    def __init__(self, directory: OwnedDirectory, path: str) -> None:
        self.directory, self.path = directory, path
        self.name = directory.describe(path)
        self.failure: SyncError | None = None
        make_directories(directory, path)

    def put_in_place(self) -> list[int]:
        """Finish an interrupted compaction; return the base offsets of all segments."""
        names = self.directory.names(self.path)
        files = sort_files(names, self._end_of_swap)
        temporary = [name for name in names if name.endswith(_TEMPORARY)]
        for name in (*files.removable, *temporary):
            self.directory.remove(self._in(name))
            if name.endswith(State.SWAP):
                self.sync_names()  # The order matters: see SegmentFiles.
        # A removed file must not come back beside its replacement.
        self.sync_names()
        for name in files.swapped:
            self.directory.replace(self._in(name), self._in(name.removesuffix(State.SWAP)))
            self.sync_names()
        return [base for base, _ in files.segments]

    def _end_of_swap(self, base: int) -> int:
        segment = LogSegment.read(self.directory, self.path, base, frozenset(Kind))
        try:
            return segment.next_offset()
        finally:
            segment.close()

    def has(self, base_offset: int, kind: Kind) -> bool:
        """Return whether a segment has a file of this kind."""
        return self.directory.exists(self._place(base_offset, kind))

    def remove_segment(self, base_offset: int) -> None:
        """Remove the files of a segment durably."""
        for kind in Kind:
            self.directory.remove(self._place(base_offset, kind))
        self.sync_names()

    def snapshots(self) -> list[int]:
        """Return the offsets of the producer snapshots, ascending."""
        names = self.directory.names(self.path)
        found = (name for name in names if name.endswith(Kind.SNAPSHOT))
        return sort_files(found, lambda base: base).snapshots

    def read_snapshot(self, offset: int) -> bytes:
        """Return the bytes of a producer snapshot."""
        return read_whole(self.directory, self._place(offset, Kind.SNAPSHOT)) or b""

    def write_snapshot(self, producers: ProducerState) -> None:
        """Replace the producer snapshot of an offset durably."""
        data = producer_snapshot.encode(list(producers.producers.values()))
        self._replace(self._place(producers.end_offset, Kind.SNAPSHOT), data)

    def remove_snapshots_above(self, offset: int) -> None:
        """Remove the producer snapshots of later offsets durably."""
        later = [snapshot for snapshot in self.snapshots() if snapshot > offset]
        for snapshot in later:
            self.directory.remove(self._place(snapshot, Kind.SNAPSHOT))
        if later:
            self.sync_names()

    def read_epochs(self) -> list[LeaderEpoch]:
        """Return the leader epochs; empty without their file.

        Raises:
            FormatError: the file cannot be read.
        """
        data = read_whole(self.directory, self._in(checkpoint_file.LEADER_EPOCHS))
        return checkpoint_file.decode_leader_epochs(data or b"")

    def write_epochs(self, epochs: Sequence[LeaderEpoch]) -> None:
        """Replace the leader epochs durably."""
        data = checkpoint_file.encode_leader_epochs(list(epochs))
        self._replace(self._in(checkpoint_file.LEADER_EPOCHS), data)

    def _replace(self, path: str, data: bytes) -> None:
        with self.syncing():
            replace_file(self.directory, path, data)

    def sync_names(self) -> None:
        """Make the names of all files durable."""
        with self.syncing():
            self.directory.sync_directory(self.path)

    @contextmanager
    def syncing(self) -> Generator[None]:
        """Remember a sync that fails inside the block."""
        try:
            yield
        except SyncError as error:
            self.failure = self.failure or error
            raise

    def check(self) -> None:
        """Raise if a sync has failed.

        Raises:
            SyncError: the first failed sync.
        """
        if self.failure is not None:
            raise SyncError(str(self.failure), self.failure.errno) from self.failure

    def _place(self, offset: int, kind: Kind) -> str:
        return self._in(file_name(offset, kind))

    def _in(self, name: str) -> str:
        return f"{self.path}/{name}".lstrip("/")
