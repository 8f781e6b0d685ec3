"""Find out which RocketMQ generation wrote a store (docs/store-reader.md, "Dialect")."""

from __future__ import annotations

from typing import NamedTuple

from mqlake.formats.checkpoint import Checkpoint
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import IndexEntry, index_key
from mqlake.formats.java_string import index_key_hash
from mqlake.storage.protocol import Directory
from mqlake.store.index.index_files import IndexFile, IndexFiles
from mqlake.store.log.segments import CommitLog

_LOOKED_AT = 64
"""Entries of an index file that are examined, the last ones first."""

_LOST = IndexEntry(0, 0, 0, 0)

_ASSUMPTION = "assumption"

_TRACES = (
    (Dialect.V5_5, ("rocksdbstore",)),
    (Dialect.V5_3, ("compaction", "timerwheel", "config/consumerOrderInfo.json")),
    (Dialect.V4_9, ("config/topics.json",)),
)
"""What a release leaves in a store that older ones do not; the newest release first."""


class Detected(NamedTuple):
    """The dialect, and the evidence: "index entries", "checkpoint", "other files", "assumption"."""

    dialect: Dialect
    detected_by: str

    @property
    def is_assumed(self) -> bool:
        """Return whether no file of the store shows it."""
        return self.detected_by == _ASSUMPTION


def detect(
    directory: Directory, log: CommitLog, index: IndexFiles, checkpoint: Checkpoint | None
) -> Detected:
    """Return the dialect of a store: from its index, otherwise from other traces of a release."""
    for file in reversed(index.files):
        has_tags = _indexes_tags(log, file)
        if has_tags is not None:
            older = _by_checkpoint(log, checkpoint) or Dialect.V5_3
            other = Dialect.V5_3 if older is Dialect.V5_5 else older
            return Detected(Dialect.V5_5 if has_tags else other, "index entries")
    if (dialect := _by_checkpoint(log, checkpoint)) is not None:
        return Detected(dialect, "checkpoint")
    for dialect, traces in _TRACES:
        if any(directory.exists(path) for path in traces):
            return Detected(dialect, "other files")
    return Detected(Dialect.V5_5, _ASSUMPTION)


def _by_checkpoint(log: CommitLog, checkpoint: Checkpoint | None) -> Dialect | None:
    if checkpoint is None or not any(checkpoint):
        return None
    if checkpoint.logics_physical_offset:
        return Dialect.V5_5
    if checkpoint.master_flushed_offset or checkpoint.confirm_physical_offset:
        return Dialect.V5_3
    # The release writes no offsets, or the checkpoint is from a time with only the first record.
    first = log.record(0)
    is_first = first is not None and checkpoint.physic_msg_timestamp <= first.store_timestamp
    return None if is_first else Dialect.V4_9


def _indexes_tags(log: CommitLog, file: IndexFile) -> bool | None:
    """Return whether tags are indexed, None if no record shows it."""
    newest, header = file.header.index_count - 1, file.header
    for number in range(newest - 1, max(0, newest - _LOOKED_AT), -1):
        offset = file.entry(number).physical_offset
        # The keys of the first and the last record may be divided between two files.
        is_last = offset < file.entry(number + 1).physical_offset
        if is_last and header.begin_physical_offset < offset < header.end_physical_offset:
            record = log.record(offset)
            if record is not None and record.tags:
                hashes = _hashes_of_record(file, number)
                if hashes is not None:
                    return index_key_hash(index_key(record.topic, record.tags, "T")) in hashes
    return None


def _hashes_of_record(file: IndexFile, last: int) -> set[int] | None:
    """Return the hashes of a record's entries, None if some may have been lost.

    Args:
        last: number of the last of them, after which another record's follow.
    """
    offset, hashes = file.entry(last).physical_offset, set[int]()
    for number in range(last, 0, -1):
        entry = file.entry(number)
        if entry == _LOST:
            return None
        if entry.physical_offset != offset:
            break
        hashes.add(entry.key_hash)
    return hashes
