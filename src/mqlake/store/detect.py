"""Find out which RocketMQ generation wrote a store (docs/store-reader.md, "Dialect")."""

from __future__ import annotations

from typing import NamedTuple

from mqlake.formats import index_file
from mqlake.formats.checkpoint import Checkpoint
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import index_key
from mqlake.formats.record import Record
from mqlake.storage.protocol import Directory
from mqlake.store.index.index_files import IndexFile, IndexFiles
from mqlake.store.log.segments import CommitLog

_LOOKED_AT = 64
"""Entries of an index file that are looked at, the last ones first."""

_ASSUMPTION = "assumption"

_TRACES = (
    (Dialect.V5_5, ("rocksdbstore",)),
    (Dialect.V5_3, ("compaction", "timerwheel", "config/consumerOrderInfo.json")),
    (Dialect.V4_9, ("config/topics.json",)),
)
"""What a release leaves in a store that older ones do not; the newest release first."""


class Detected(NamedTuple):
    """The dialect, and what says so: "index entries", "checkpoint", "other files", "assumption"."""

    dialect: Dialect
    detected_by: str

    @property
    def is_assumed(self) -> bool:
        """Whether no file of the store tells."""
        return self.detected_by == _ASSUMPTION


def detect(
    directory: Directory, log: CommitLog, index: IndexFiles, checkpoint: Checkpoint | None
) -> Detected:
    """Return the dialect of a store: what its index holds, else what else a release leaves."""
    for file in reversed(index.files):
        has_tags = _indexes_tags(log, file)
        if has_tags is not None:
            older = _by_checkpoint(checkpoint) or Dialect.V5_3
            other = Dialect.V5_3 if older is Dialect.V5_5 else older
            return Detected(Dialect.V5_5 if has_tags else other, "index entries")
    if (dialect := _by_checkpoint(checkpoint)) is not None:
        return Detected(dialect, "checkpoint")
    for dialect, traces in _TRACES:
        if any(directory.exists(path) for path in traces):
            return Detected(dialect, "other files")
    return Detected(Dialect.V5_5, _ASSUMPTION)


def _by_checkpoint(checkpoint: Checkpoint | None) -> Dialect | None:
    if checkpoint is None or not any(checkpoint):
        return None
    if checkpoint.logics_physical_offset:
        return Dialect.V5_5
    is_5x = checkpoint.master_flushed_offset or checkpoint.confirm_physical_offset
    return Dialect.V5_3 if is_5x else Dialect.V4_9


def _indexes_tags(log: CommitLog, file: IndexFile) -> bool | None:
    """Say whether tags are indexed, None where no record that tells was found."""
    newest = file.header.index_count - 1
    for number in range(newest, max(0, newest - _LOOKED_AT), -1):
        entry = index_file.decode_entry(file.view, file.sizes.slots, number)
        # The keys of the first and the last record may be parted between two files.
        header = file.header
        if header.begin_physical_offset < entry.physical_offset < header.end_physical_offset:
            record = log.record(entry.physical_offset)
            if record is not None and record.tags:
                return _has_tag_entry(file, record, record.tags)
    return None


def _has_tag_entry(file: IndexFile, record: Record, tags: str) -> bool:
    entries = file.entries(index_key(record.topic, tags, "T"))
    return any(entry.physical_offset == record.physical_offset for entry in entries)
