"""The report of `inspect` on a store (docs/store-reader.md).

JSON has the same names in camel case. Offsets and lengths are bytes, timestamps milliseconds.
"""

from __future__ import annotations

import msgspec

from mqlake.formats.damage import Damage


class LogFileReport(msgspec.Struct, frozen=True, rename="camel"):
    """One commit-log file."""

    name: str
    offset: int
    length: int = msgspec.field(name="bytes")


class GoodRange(msgspec.Struct, frozen=True, rename="camel"):
    """A run of good records past the log's end: physical offset, bytes, records."""

    offset: int
    length: int = msgspec.field(name="bytes")
    records: int


class BeyondEndReport(msgspec.Struct, frozen=True, rename="camel"):
    """Good records past the log's end, which RocketMQ cuts off when it recovers."""

    records: int
    length: int = msgspec.field(name="bytes")
    ranges: list[GoodRange]


class CutOffReport(msgspec.Struct, frozen=True, rename="camel"):
    """A part of the log that a recovery cut off and kept in another file.

    Attributes:
        path: of the file, relative to the store directory.
        offset: physical offset of its first byte.
        length: its size in bytes.
        records: good records in it.
    """

    path: str
    offset: int
    length: int = msgspec.field(name="bytes")
    records: int


class CommitLogReport(msgspec.Struct, frozen=True, rename="camel"):
    """The commit log: `max_offset` is where RocketMQ would continue to write.

    `end_reason` says what is there; None if the end is clean. `cut_off` are the parts that earlier
    recoveries of mqlake cut off, and that are still kept.
    """

    min_offset: int
    max_offset: int
    files: list[LogFileReport]
    file_size: int | None
    end_reason: str | None
    damage: list[Damage]
    beyond_end: BeyondEndReport
    cut_off: list[CutOffReport]


class QueueReport(msgspec.Struct, frozen=True, rename="camel"):
    """One queue: its messages have the queue offsets [min_offset, max_offset)."""

    queue_id: int
    min_offset: int
    max_offset: int


class TopicReport(msgspec.Struct, frozen=True, rename="camel"):
    """One topic; the numbers of queues are its settings, None if unknown."""

    topic: str
    queues: list[QueueReport]
    read_queue_nums: int | None = None
    write_queue_nums: int | None = None


class IndexFileReport(msgspec.Struct, frozen=True, rename="camel"):
    """One index file: its header, and the sizes that were derived from it."""

    name: str
    begin_timestamp: int
    end_timestamp: int
    begin_physical_offset: int
    end_physical_offset: int
    slot_count: int
    index_count: int
    hash_slots: int
    max_entries: int


class CheckpointReport(msgspec.Struct, frozen=True, rename="camel"):
    """The checkpoint; fields that an older RocketMQ does not write are 0."""

    physic_msg_timestamp: int
    logics_msg_timestamp: int
    index_msg_timestamp: int
    master_flushed_offset: int
    confirm_physical_offset: int
    logics_physical_offset: int


class GroupReport(msgspec.Struct, frozen=True, rename="camel"):
    """A consumer group: its next offset of each queue, by topic."""

    group: str
    offsets: dict[str, dict[int, int]]


class ConfigReport(msgspec.Struct, frozen=True, rename="camel"):
    """The content of the `config` directory.

    Attributes:
        deleted_before: by topic that was deleted, the physical offset before which its messages
            are deleted.
    """

    topics: int
    consumer_groups: list[GroupReport]
    deleted_before: dict[str, int]


class StoreReport(msgspec.Struct, frozen=True, rename="camel"):
    """A whole store.

    Attributes:
        last_stop_was_clean: None while a broker has the store open.
        owner: process that has the store open; None without one, 0 or less if unknown.
        abort_process: process id in the abort file.
        detected_by: the evidence for the dialect.
        damage: the damage of derived files; the log's is in `commit_log`.
    """

    store: str
    last_stop_was_clean: bool | None
    owner: int | None
    abort_process: int | None
    dialect: str
    detected_by: str
    commit_log: CommitLogReport
    queue_file_size: int | None
    topics: list[TopicReport]
    index: list[IndexFileReport]
    checkpoint: CheckpointReport | None
    config: ConfigReport
    damage: list[Damage]
