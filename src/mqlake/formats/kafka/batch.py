"""What all versions of Kafka's batches have in common: the fixed fields, as one value.

Version 2 is `record_batch.py`, versions 0 and 1 are `message_set.py`; `read_header` tells them
apart by the magic byte, which all have in the same place. Upstream: `RecordBatch`,
`FileLogInputStream`.
"""

from __future__ import annotations

import enum
from struct import Struct
from typing import NamedTuple

import msgspec

from mqlake.formats.kafka.compression import Compression, compression_of

# What every batch and message begins with.
PREFIX = Struct(
    ">"
    "q"  # base offset; a version 0 or 1 message's own offset
    "i"  # length of what follows these two fields
    "i"  # partition leader epoch; the checksum in versions 0 and 1
    "b"  # magic
)
LOG_OVERHEAD = 12
PREFIX_SIZE = PREFIX.size

# Upstream: LegacyRecord.RECORD_OVERHEAD_V0, the least that any length may say.
MIN_LENGTH = 14

MAGIC_V0, MAGIC_V1, MAGIC_V2 = 0, 1, 2

TIMESTAMP_TYPE = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1

MAX_INT = 0x7FFFFFFF
MAX_LONG = 0x7FFFFFFFFFFFFFFF


class TimestampType(enum.StrEnum):
    """What a record's timestamp says, by Kafka's own names."""

    NONE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class Batch(NamedTuple):
    """The fixed fields of a batch; a version 0 or 1 message is a batch of its own.

    Attributes:
        position: where it starts in its file, in bytes.
        size: all of it, in bytes.
        magic: format version.
        base_offset: of its first record; of a compressed version 0 or 1 message, its last offset.
        last_offset: of its last record, as written (compaction may have removed that one).
        leader_epoch: -1 for none.
        crc: the stored checksum, unsigned.
        attributes: codec, timestamp type and flags.
        base_timestamp: milliseconds; what records count from, and the delete horizon if that flag
            is set.
        max_timestamp: milliseconds; -1 for none.
        producer_id, producer_epoch, base_sequence: -1 for none.
        record_count: records in it; -1 where the version does not say.
    """

    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def end(self) -> int:
        """Position after the batch."""
        return self.position + self.size

    @property
    def next_offset(self) -> int:
        """The offset that the record after this batch gets at least."""
        return self.last_offset + 1

    @property
    def compression(self) -> Compression:
        """The codec; FormatError for an unknown one."""
        return compression_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        """What the timestamps of its records say."""
        if self.magic == MAGIC_V0:
            return TimestampType.NONE
        if self.attributes & TIMESTAMP_TYPE:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def has_producer_id(self) -> bool:
        """Return whether an idempotent or transactional producer wrote it."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def is_transactional(self) -> bool:
        """Return whether it belongs to a transaction."""
        return self.magic >= MAGIC_V2 and self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """Return whether its record is a marker for readers rather than a message."""
        return self.magic >= MAGIC_V2 and self.attributes & CONTROL != 0

    @property
    def delete_horizon(self) -> int | None:
        """When tombstones and markers in it may go, in milliseconds; None if not decided."""
        if self.magic >= MAGIC_V2 and self.attributes & DELETE_HORIZON:
            return self.base_timestamp
        return None

    @property
    def last_sequence(self) -> int:
        """Sequence number of its last record, -1 for none; they wrap at 2^31."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset - self.base_offset) & MAX_INT


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record, of any version.

    Attributes:
        offset: its place in the partition.
        timestamp: milliseconds; -1 for none.
        timestamp_type: what the timestamp says.
        leader_epoch: -1 for none.
        key, value: None for null.
        headers: names and values, in order; values None for null.
        is_control: a marker, which consumers do not show.
    """

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    leader_epoch: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    is_control: bool = False
