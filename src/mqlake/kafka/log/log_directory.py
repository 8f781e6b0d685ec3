"""A whole log directory, Kafka's `log.dir`, that is read. Kafka: `LogManager`."""

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
    """The partitions of a log directory, and what its checkpoints say of them.

    Attributes:
        directory: where it is.
        is_clean: whether Kafka was stopped in good order, and has not been started again.
    """

    def __init__(self, directory: Directory) -> None:
        """Look at a log directory.

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
        """Return the process id of a Kafka that runs on the directory, None where none does."""
        return self.directory.lock_holder(LOCK) if self.directory.exists(LOCK) else None

    def checkpoint(self, name: str) -> dict[tuple[str, int], int]:
        """Return the offsets of a checkpoint file by topic and partition, none without the file.

        Raises:
            FormatError: it cannot be read.
        """
        data = read_whole(self.directory, name)
        return {} if data is None else checkpoint_file.decode_offsets(data)

    def partition(self, topic: str, partition: int, *, only: int | None = None) -> Partition:
        """Open a partition for reading; of its segments `only` the one of that base offset.

        Raises:
            StoreError: there is no such partition, or a file cannot be read.
            FormatError: a checkpoint that cannot be read.
        """
        path = partition_name(topic, partition)
        name = parse_partition_name(path)
        if name is None or name.topic != topic or not self.directory.is_directory(path):
            raise StoreError(f"{self.directory.describe()}: no partition {path[:300]!r}")
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
