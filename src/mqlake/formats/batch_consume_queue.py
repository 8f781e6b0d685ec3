"""Read and write batch consume-queue units (docs/formats/batch_consume_queue.md).

RocketMQ 5: `BatchConsumeQueue`, the queues of topics with attribute `queue.type=BatchCQ`.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.properties import INNER_BASE, INNER_NUM

UNIT = Struct(
    ">"
    "q"  # physical offset
    "i"  # size
    "q"  # tags code
    "q"  # store timestamp
    "q"  # base offset: queue offset of the batch's first message
    "h"  # batch size: messages in the batch
    "i"  # compacted offset
    "4x"  # reserved
)
UNIT_SIZE = UNIT.size
DEFAULT_FILE_SIZE = 300_000 * UNIT_SIZE
NO_COMPACTED_OFFSET = -1
MOST_MESSAGES = (1 << 15) - 1
"""The maximum number of messages in one unit, and therefore in one record."""

MOST_QUEUE_OFFSET = (1 << 63) - 1


class BatchQueueUnit(NamedTuple):
    """One batch: where its record is (bytes), store timestamp (ms), and its queue offsets."""

    physical_offset: int
    size: int
    tags_code: int
    store_timestamp: int
    base_offset: int
    batch_size: int
    compacted_offset: int

    @property
    def end_offset(self) -> int:
        """Return the queue offset after the batch's last message."""
        return self.base_offset + self.batch_size


def decode(data: bytes | memoryview, at: int = 0) -> BatchQueueUnit:
    """Return the unit at byte `at`.

    Raises:
        FormatError: fewer than 46 bytes there.
    """
    if at < 0 or at + UNIT_SIZE > len(data):
        raise FormatError(f"there is no whole batch consume queue unit at byte {at} of {len(data)}")
    return BatchQueueUnit(*UNIT.unpack_from(data, at))


def encode(unit: BatchQueueUnit) -> bytes:
    """Return the 46 bytes of a unit."""
    return UNIT.pack(*unit)


def inner_batch(properties: Mapping[str, str], queue_offset: int) -> tuple[int, int]:
    """Return (base offset, batch size) of a record: those of its properties, if it has both.

    Any other record is a batch of one message at its queue offset. So is a record whose properties
    are not valid numbers, which RocketMQ considers damaged.

    Upstream: `CommitLog.setBatchSizeIfNeeded`.
    """
    base, size = properties.get(INNER_BASE, ""), properties.get(INNER_NUM, "")
    if is_number(base) and is_number(size):
        numbers = int(base), int(size)
        if 0 < numbers[1] <= MOST_MESSAGES and sum(numbers) <= MOST_QUEUE_OFFSET:
            return numbers
    return queue_offset, 1


def is_number(text: str) -> bool:
    """Return whether a text is a decimal number with at most 19 digits."""
    return text.isascii() and text.isdigit() and len(text) <= len(str(MOST_QUEUE_OFFSET))


def is_written(unit: BatchQueueUnit) -> bool:
    """Return whether a unit can be a batch; RocketMQ tests the same when it recovers a queue."""
    return min(unit.physical_offset, unit.base_offset) >= 0 and min(unit.size, unit.batch_size) > 0
