"""Read batches of whichever version their magic byte says (docs/formats/kafka/log_file.md).

Upstream: `FileLogInputStream.nextBatch`, `RecordBatch.ensureValid`.
"""

from __future__ import annotations

from mqlake.errors import FormatError
from mqlake.formats.kafka import message_set, record_batch
from mqlake.formats.kafka.batch import (
    LOG_OVERHEAD,
    MAGIC_V0,
    MAGIC_V2,
    MIN_LENGTH,
    PREFIX,
    PREFIX_SIZE,
    Batch,
    Record,
)
from mqlake.formats.kafka.compression import CODEC_MASK, MAX_DECOMPRESSED

# As many bytes as any version's fixed fields take.
HEADER_SIZE = record_batch.HEADER_SIZE


def read_header(
    data: bytes | bytearray | memoryview, at: int, position: int, end: int
) -> Batch | None:
    """Return the fixed fields of the batch at index `at`: `position` in a log of `end` bytes.

    None if the log ends before the batch does, which is how a log that is being written or was torn
    by a crash ends. `data` must hold HEADER_SIZE bytes from `at` on, or all up to `end`.

    Raises:
        FormatError: no batch; the message says why. Upstream: CorruptRecordException.
    """
    # Kafka reads 17 bytes before it decides, and wants one more to be there.
    if position >= end - PREFIX_SIZE:
        return None
    _, length, _, magic = PREFIX.unpack_from(data, at)
    if length < MIN_LENGTH:
        raise FormatError(f"a batch says that {length} bytes follow, less than any version has")
    size = LOG_OVERHEAD + length
    if position + size > end:
        return None
    if magic >= MAGIC_V2:
        if size < HEADER_SIZE:
            raise FormatError(f"a batch of {size} bytes, less than the {HEADER_SIZE} of its fields")
        return record_batch.decode_header(data, at, position)
    if magic < MAGIC_V0:
        raise FormatError(f"a batch of version {magic}")
    return message_set.decode_header(data, at, position)


def check(batch: Batch, data: bytes) -> None:
    """Check the sum of a whole batch.

    Raises:
        FormatError: it is not what the batch says.
    """
    module = record_batch if batch.magic >= MAGIC_V2 else message_set
    computed = module.computed_crc(data)
    if computed != batch.crc:
        raise FormatError(f"checksum {batch.crc:08x} in the batch, {computed:08x} of its bytes")


def decode_records(batch: Batch, data: bytes, limit: int = MAX_DECOMPRESSED) -> list[Record]:
    """Return the records of a whole batch, decompressed into at most `limit` bytes.

    Raises:
        FormatError: a structure that Kafka would not accept either.
    """
    module = record_batch if batch.magic >= MAGIC_V2 else message_set
    return module.decode_records(batch, data, limit)


def knows_first_offset(batch: Batch) -> bool:
    """Return whether `base_offset` is that of the first record, without a look inside."""
    return batch.magic >= MAGIC_V2 or not batch.attributes & CODEC_MASK
