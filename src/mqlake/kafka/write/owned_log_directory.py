"""A log directory that this process writes, with Kafka's lock on it. Upstream: `LogManager`."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import msgspec

from mqlake.errors import StoreError
from mqlake.formats.kafka import checkpoint_file
from mqlake.formats.kafka.file_name import (
    CLEAN_SHUTDOWN,
    LOCK,
    METADATA_TOPIC,
    is_topic,
    partition_name,
)
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.write.owned_partition import OwnedPartition
from mqlake.storage.clock import Clock
from mqlake.storage.durable import replace_file
from mqlake.storage.fork_guard import ForkGuard
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import OwnedDirectory

_UNKNOWN_BROKER_EPOCH = -1


class OwnedLogDirectory:
    """The log directory that a block owns: no Kafka may run on it.

    At the end of the block, partitions are closed, and the checkpoints and the mark of a clean
    stop are written, so that Kafka has nothing to recover. After an exception, there is no mark.
    A child that is forked inside of the block may not use it, and leaves it without a change.

    Attributes:
        is_clean: whether it was stopped cleanly before.
    """

    def __init__(
        self,
        location: Path | OwnedDirectory,
        *,
        clock: Clock | None = None,
        recover_all: bool = False,
    ) -> None:
        """Name a directory; entering the block creates it if it is missing.

        `recover_all` trusts neither the mark of a clean stop nor the recovery points.
        """
        self._location = location
        self.is_clean = True
        self._clock = clock
        self._recover_all = recover_all
        self._partitions: dict[tuple[str, int], OwnedPartition] = {}

    def __enter__(self) -> Self:
        location = self._location
        directory = LocalOwnedDirectory.make(location) if isinstance(location, Path) else location
        self._directory = directory
        self._lock = directory.own(LOCK)
        self._lock.__enter__()
        try:
            self._guard = ForkGuard(directory.describe())
            self._begin()
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def _begin(self) -> None:
        before = LogDirectory(self._directory)
        self.is_clean = not self._recover_all and (before.is_clean or not before.partitions())
        self._starts = before.checkpoint(checkpoint_file.LOG_START_OFFSETS)
        self._points = {}
        if not self._recover_all:
            self._points = before.checkpoint(checkpoint_file.RECOVERY_POINTS)
        self._marks = before.checkpoint(checkpoint_file.HIGH_WATERMARKS)
        self._directory.remove(CLEAN_SHUTDOWN)
        self._directory.sync_directory("")

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        if kind is None:
            self._guard.check()
        try:
            if kind is None:
                self._close()
            else:
                self._abandon()
        except BaseException:
            self._abandon()
            raise
        finally:
            self._lock.__exit__(None, None, None)

    def _abandon(self) -> None:
        if not self._guard.is_child:
            for partition in self._partitions.values():
                partition.abandon()

    def partition(
        self, topic: str, partition: int, settings: LogSettings | None = None
    ) -> OwnedPartition:
        """Open a partition, or make it.

        Raises:
            StoreError: no name for a topic, a file that cannot be opened or written, or a process
                that was forked inside of the block.
        """
        self._guard.check()
        key = (topic, partition)
        if not is_topic(topic) or not 0 <= partition < 1 << 31:
            where = self._directory.describe()
            raise StoreError(
                f"{where}: there is no partition {partition} of a topic {topic[:300]!r}"
            )
        if key not in self._partitions:
            self._partitions[key] = OwnedPartition(
                self._directory,
                settings,
                path=partition_name(topic, partition),
                clock=self._clock,
                is_clean=self.is_clean,
                recovery_point=self._points.get(key, 0),
                log_start_offset=self._starts.get(key, 0),
            )
        return self._partitions[key]

    def _close(self) -> None:
        for key, partition in self._partitions.items():
            partition.close()
            self._points[key] = self._marks[key] = partition.log_end_offset
            self._starts.pop(key, None)
            if partition.log_start_offset > partition.segments[0].base_offset:
                self._starts[key] = partition.log_start_offset
        self._write(checkpoint_file.RECOVERY_POINTS, checkpoint_file.encode_offsets(self._points))
        self._write(checkpoint_file.LOG_START_OFFSETS, checkpoint_file.encode_offsets(self._starts))
        self._write(checkpoint_file.HIGH_WATERMARKS, checkpoint_file.encode_offsets(self._marks))
        # Partitions that were not opened may still need a recovery.
        opened = set(self._partitions)
        named = {
            (name.topic, name.partition)
            for name in LogDirectory(self._directory).partitions()
            if name.topic != METADATA_TOPIC
        }
        if self.is_clean or named <= opened:
            mark = {"version": 0, "brokerEpoch": _UNKNOWN_BROKER_EPOCH}
            self._write(CLEAN_SHUTDOWN, msgspec.json.encode(mark))

    def _write(self, name: str, data: bytes) -> None:
        replace_file(self._directory, name, data)
