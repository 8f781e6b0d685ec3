"""Which partitions a path names: a segment, a partition's directory, or a whole log directory."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mqlake.errors import StoreError
from mqlake.formats.kafka import checkpoint_file
from mqlake.formats.kafka.file_name import (
    META_PROPERTIES,
    DirectoryState,
    Kind,
    State,
    parse_file_name,
    parse_partition_name,
)
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.log.partition import Partition
from mqlake.storage.local import LocalDirectory

_CHECKPOINTS = (META_PROPERTIES, checkpoint_file.RECOVERY_POINTS)


class PartitionPath(NamedTuple):
    """One partition, or one segment of it.

    Attributes:
        path: of the partition's directory.
        topic, partition: by its name; None and -1 where it has no such name.
        logs: the log directory that it is in, None if it lies elsewhere.
        only: base offset of the one segment, None for all.
    """

    path: Path
    topic: str | None
    partition: int
    logs: LogDirectory | None
    only: int | None = None

    @property
    def name(self) -> str:
        """How a person knows it."""
        return f"{self.topic}-{self.partition}" if self.topic is not None else self.path.name

    def open(self) -> Partition:
        """Open it for reading. Without a log directory, transaction indexes are trusted.

        Raises:
            StoreError: a file that cannot be read.
            FormatError: a checkpoint that cannot be read.
        """
        if self.logs is not None and self.topic is not None:
            return self.logs.partition(self.topic, self.partition, only=self.only)
        return Partition(LocalDirectory(self.path), only=self.only)


class PartitionPaths(NamedTuple):
    """What a path names: partitions, and the log directory if it names one."""

    partitions: list[PartitionPath]
    logs: LogDirectory | None


def find_partitions(path: Path) -> PartitionPaths:
    """Return the partitions of a path.

    Raises:
        StoreError: there is nothing, or neither segment nor partition.
    """
    if not path.exists():
        raise StoreError(f"{path}: the file or directory does not exist")
    if not path.is_dir():
        name = parse_file_name(path.name)
        if name is None or name.kind is not Kind.LOG or name.state is not State.LIVE:
            raise StoreError(f"{path}: not the file of a segment, such as {0:020d}.log")
        return PartitionPaths([_place(path.absolute().parent)._replace(only=name.offset)], None)
    if _is_partition(path):
        return PartitionPaths([_place(path.absolute())], None)
    logs = LogDirectory(LocalDirectory(path))
    names = logs.partitions()
    if not names and not _is_log_directory(path):
        raise StoreError(
            f"{path}: not a Kafka log: there are neither segments nor partitions in it"
        )
    found = [
        PartitionPath(path / f"{name.topic}-{name.partition}", name.topic, name.partition, logs)
        for name in names
    ]
    return PartitionPaths(found, logs)


def _place(path: Path) -> PartitionPath:
    name = parse_partition_name(path.name)
    if name is None or name.state is not DirectoryState.LIVE:
        return PartitionPath(path, None, -1, None)
    is_inside = _is_log_directory(path.parent)
    logs = LogDirectory(LocalDirectory(path.parent)) if is_inside else None
    return PartitionPath(path, name.topic, name.partition, logs)


def _is_partition(path: Path) -> bool:
    names = (parse_file_name(entry.name) for entry in path.iterdir())
    return any(name is not None and name.kind is Kind.LOG for name in names)


def _is_log_directory(path: Path) -> bool:
    return any((path / name).exists() for name in _CHECKPOINTS)
