"""Read and write the store checkpoint (docs/formats/checkpoint.md).

Upstream: `StoreCheckpoint`. One 4096-byte page with six longs at its start. mqlake keeps its own
resume point after them, where RocketMQ neither reads nor writes, and where in the log it wrote each
record with a checksum.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import HEADER, IndexHeader

SIZE = 4096

_FIELDS = Struct(
    ">"
    "q"  # physic_msg_timestamp
    "q"  # logics_msg_timestamp
    "q"  # index_msg_timestamp
    "q"  # master_flushed_offset: 5.x
    "q"  # confirm_physical_offset: 5.x
    "q"  # logics_physical_offset: 5.5
)
_RESUME = Struct(
    ">"
    "i"  # dialect: 49, 53 or 55
    "q"  # position
    "q"  # last record
    "q"  # last queued record
    "q"  # its store timestamp
    "q"  # name of the last index file, as a number; 0 for none
    "i"  # hash slots of that file
    f"{HEADER.size}s"  # its header
    "q"  # max offsets of all queues
    "q"  # where their files start
    "i"  # number of index files
    "q"  # name of the first one, as a number; 0 for none
)
_SEAL = Struct(">I")
_CHECKSUMMED = Struct(
    ">"
    "q"  # first physical offset
    "q"  # the one at which it ends
)
_RESUME_AT, _SEAL_AT = _FIELDS.size, _FIELDS.size + _RESUME.size
_CHECKSUMMED_AT = _SEAL_AT + _SEAL.size
_CHECKSUMMED_SEAL_AT = _CHECKSUMMED_AT + _CHECKSUMMED.size
FIELD_COUNT = {Dialect.V4_9: 3, Dialect.V5_3: 5, Dialect.V5_5: 6}


class Checkpoint(NamedTuple):
    """How far the store was flushed: store timestamps in milliseconds, offsets in bytes."""

    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_physical_offset: int = 0
    logics_physical_offset: int = 0


class ResumePoint(NamedTuple):
    """From where mqlake completes what it derives from the log.

    Attributes:
        dialect: whose index rules hold in the store.
        position: physical offset at which a record starts or will; all before it is on the disk:
            log, consume queues and index.
        last_record: physical offset of the last record before it, -1 for none.
        last_queued: the same of the last one that has a queue entry.
        last_queued_timestamp: its store timestamp, milliseconds; 0 for none.
        index_name: the last index file's name, as a number; 0 for none.
        index_slots: how many hash slots that file has.
        index_header: what is in that file.
        queue_ends: the sum of the max offsets of all queues.
        queue_starts: the sum of the queue offsets at which their files start.
        index_files: how many index files there are.
        index_first: the first one's name, as a number; 0 for none.
    """

    dialect: Dialect
    position: int
    last_record: int
    last_queued: int
    last_queued_timestamp: int
    index_name: int
    index_slots: int
    index_header: IndexHeader
    queue_ends: int
    queue_starts: int
    index_files: int
    index_first: int


class Checksummed(NamedTuple):
    """The part of the log in which mqlake wrote every record with a checksum of all its bytes.

    Attributes:
        start: physical offset from which on it did.
        end: physical offset at which it stopped, cleanly; STILL_OPEN before that.
    """

    start: int
    end: int


STILL_OPEN = (1 << 63) - 1


def decode(data: bytes | memoryview) -> Checkpoint:
    """Return the six fields; those that an older RocketMQ does not write are 0.

    Raises:
        FormatError: fewer than 48 bytes.
    """
    if len(data) < _FIELDS.size:
        raise FormatError(f"a checkpoint has {SIZE} bytes, but this one has {len(data)}")
    return Checkpoint(*_FIELDS.unpack_from(data))


def decode_resume(data: bytes | memoryview) -> ResumePoint | None:
    """Return the resume point, None if none was written or RocketMQ wrote since."""
    if not _is_sealed(data, _SEAL_AT):
        return None
    number, *places, header, ends, starts, files, first = _RESUME.unpack_from(data, _RESUME_AT)
    dialect = next((dialect for dialect in Dialect if _number(dialect) == number), None)
    if dialect is None:
        return None
    last = IndexHeader(*HEADER.unpack(header))
    return ResumePoint._make((dialect, *places, last, ends, starts, files, first))


def decode_checksummed(data: bytes | memoryview) -> Checksummed | None:
    """Return where records have checksums, None if nowhere or if RocketMQ wrote since."""
    if not _is_sealed(data, _CHECKSUMMED_SEAL_AT):
        return None
    found = Checksummed(*_CHECKSUMMED.unpack_from(data, _CHECKSUMMED_AT))
    return found if 0 <= found.start <= found.end else None


def _is_sealed(data: bytes | memoryview, at: int) -> bool:
    """Return whether the CRC-32 at a position is that of all bytes before it."""
    if len(data) < at + _SEAL.size:
        return False
    (seal,) = _SEAL.unpack_from(data, at)
    return seal == zlib.crc32(data[:at])


def _number(dialect: Dialect) -> int:
    return int(dialect.value.replace(".", ""))


def encode(
    checkpoint: Checkpoint,
    dialect: Dialect = Dialect.V5_5,
    resume: ResumePoint | None = None,
    checksummed: Checksummed | None = None,
) -> bytes:
    """Return the 4096 bytes, with the fields that the dialect has and zeros for the others.

    All that counts is within the first 512 bytes, which a disk writes as a whole.
    """
    count = FIELD_COUNT[dialect]
    fields = checkpoint[:count] + (0,) * (len(checkpoint) - count)
    data = _FIELDS.pack(*fields)
    if resume is not None:
        header = HEADER.pack(*resume.index_header)
        data += _RESUME.pack(_number(resume.dialect), *resume[1:-5], header, *resume[-4:])
        data += _SEAL.pack(zlib.crc32(data))
    if checksummed is not None:
        data = data.ljust(_CHECKSUMMED_AT, b"\0") + _CHECKSUMMED.pack(*checksummed)
        data += _SEAL.pack(zlib.crc32(data))
    return data.ljust(SIZE, b"\0")
