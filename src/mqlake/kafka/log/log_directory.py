"""Read a whole log directory, Kafka's `log.dir`.

Upstream: `LogManager`.
"""

from __future__ import annotations

from mqlake.errors import StoreError
from mqlake.formats.kafka import checkpoint_file
from mqlake.formats.kafka.file_name import (
    CLEAN_SHUTDOWN,
    LOCK,
    DirectoryState,
    PartitionName,
    parse_partition_name,
    partition_name,
)
from mqlake.kafka.files.lazy_file import read_whole
from mqlake.kafka.log.partition import Partition
from mqlake.storage.protocol import Directory


class LogDirectory:
    """The partitions of a log directory, and the checkpoints about them.

    Attributes:
        directory: the log directory.
        is_clean: whether Kafka was stopped cleanly, and was not started since.
    """

    def __init__(self, directory: Directory) -> None:
        """Open a log directory for reading.

        Raises:
            StoreError: it cannot be read.
        """
        self.directory = directory
        self.is_clean = directory.exists(CLEAN_SHUTDOWN)

    def partitions(self) -> list[PartitionName]:
        """Return the live partitions, by topic and number."""
        named = map(parse_partition_name, self.directory.names(""))
        return sorted(
            name
            for name in named
            if name is not None
            and name.state is DirectoryState.LIVE
            and self.directory.is_directory(partition_name(name.topic, name.partition))
        )

    def owner(self) -> int | None:
        """Return the process id of a Kafka broker that runs on the directory, or None."""
        return self.directory.lock_holder(LOCK) if self.directory.exists(LOCK) else None

    def checkpoint(self, name: str) -> dict[tuple[str, int], int]:
        """Return a checkpoint file's offsets by topic and partition; empty without the file.

        Raises:
            FormatError: it cannot be read.
        """
        data = read_whole(self.directory, name)
        return {} if data is None else checkpoint_file.decode_offsets(data)

    def partition(self, topic: str, partition: int, *, only: int | None = None) -> Partition:
        """Open a partition for reading, or `only` its segment with that base offset.

        Raises:
            StoreError: there is no such partition, or a file cannot be read.
            FormatError: a checkpoint cannot be read.
        """
        path = partition_name(topic, partition)
        name = parse_partition_name(path)
        if name is None or name.topic != topic or not self.directory.is_directory(path):
            raise StoreError(f"{self.directory.describe()}: there is no partition {path[:300]!r}")
        starts = self.checkpoint(checkpoint_file.LOG_START_OFFSETS)
        recovery_point = None
        if not self.is_clean:
            points = self.checkpoint(checkpoint_file.RECOVERY_POINTS)
            recovery_point = points.get((topic, partition), 0)
        return Partition(
            self.directory,
            path,
            log_start_offset=starts.get((topic, partition)),
            recovery_point=recovery_point,
            only=only,
        )
