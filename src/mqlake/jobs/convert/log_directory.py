"""The partitions of the Kafka log directory that is converted."""

from __future__ import annotations

from pathlib import Path

from mqlake.errors import StoreError
from mqlake.formats.kafka.file_name import PartitionName
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.storage.local import LocalDirectory


def check_logs(logs: Path) -> list[PartitionName]:
    """Return the partitions of a log directory.

    Raises:
        StoreError: the directory cannot be read, or has no partition.
    """
    if not logs.is_dir():
        raise StoreError(f"{logs}: the directory does not exist")
    names = LogDirectory(LocalDirectory(logs)).partitions()
    if not names:
        raise StoreError(
            f"{logs}: there is no partition in it; give Kafka's log directory (log.dir)"
        )
    return names
