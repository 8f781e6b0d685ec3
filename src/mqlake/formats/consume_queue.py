"""Read and write consume-queue entries (docs/formats/consume_queue.md).

Upstream: `ConsumeQueue`, `CommitLog.checkMessageAndReturnSize` (tags code),
`DefaultMessageStore.parseDelayLevel`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats import java_string, properties

ENTRY = Struct(
    ">"
    "q"  # physical offset
    "i"  # size
    "q"  # tags code
)
ENTRY_SIZE = ENTRY.size
DEFAULT_FILE_SIZE = 300_000 * ENTRY_SIZE

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DEFAULT_DELAY_LEVELS_TEXT = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

_UNITS = {"s": 1000, "m": 60 * 1000, "h": 60 * 60 * 1000, "d": 24 * 60 * 60 * 1000}
_DELAY = re.compile(r"([0-9]{1,12})([smhd])")
_HALF_LONG = 1 << 63
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,10})")


class QueueEntry(NamedTuple):
    """One entry: the record's physical offset and size (bytes), and its tags code."""

    physical_offset: int
    size: int
    tags_code: int


BLANK_ENTRY = QueueEntry(0, 0x7FFFFFFF, 0)
"""What RocketMQ writes before a queue's first entry in a file (`ConsumeQueue.fillPreBlank`)."""


def decode(data: bytes | memoryview, at: int = 0) -> QueueEntry:
    """Return the entry at byte `at`.

    Raises:
        FormatError: fewer than 20 bytes are there.
    """
    if at < 0 or at + ENTRY_SIZE > len(data):
        raise FormatError(f"there is no whole consume queue entry at byte {at} of {len(data)}")
    return QueueEntry(*ENTRY.unpack_from(data, at))


def encode(entry: QueueEntry) -> bytes:
    """Return the 20 bytes of an entry."""
    return ENTRY.pack(*entry)


def is_written(entry: QueueEntry) -> bool:
    """Return whether a record can be there: the test that RocketMQ's recovery of a queue makes."""
    return entry.physical_offset >= 0 and entry.size > 0


def is_blank(entry: QueueEntry) -> bool:
    """Return whether the entry is one that fills a file before a queue's first entry."""
    return entry == BLANK_ENTRY


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """Return the delay (milliseconds) of each level of a `messageDelayLevel` setting.

    Raises:
        FormatError: the text is not numbers with unit s, m, h or d, separated by single spaces.
    """
    levels: list[int] = []
    for part in text.split(" "):
        match = _DELAY.fullmatch(part)
        if not match:
            raise FormatError(f'not a delay level: {part!r}; write levels as in "1s 5s 1m 2h"')
        levels.append(int(match[1]) * _UNITS[match[2]])
    return tuple(levels)


DEFAULT_DELAY_LEVELS = parse_delay_levels(DEFAULT_DELAY_LEVELS_TEXT)
"""Milliseconds of level 1, 2, …: RocketMQ's default `messageDelayLevel`."""


def delivery_time(
    level: int, store_timestamp: int, levels: Sequence[int] = DEFAULT_DELAY_LEVELS
) -> int:
    """Return when a message of delay level `level` (1 the first) is due, in milliseconds.

    A level beyond the last counts as the last. The sum wraps at 64 bits, as Java's does.
    Upstream: `computeDeliverTimestamp`.
    """
    level = min(level, len(levels))
    due = store_timestamp + (levels[level - 1] if level > 0 else 1000)
    return ((due + _HALF_LONG) & (2 * _HALF_LONG - 1)) - _HALF_LONG


def tags_code(tags: str | None) -> int:
    """Return the tags code of a record that is not scheduled: the tags' Java hash; 0 without tags.

    RocketMQ hashes the whole TAGS property, whatever the MULTI_TAGS bit of the sys flag says.
    """
    return java_string.hash_code(tags) if tags else 0


def entry_tags_code(
    topic: str,
    props: Mapping[str, str],
    store_timestamp: int,
    levels: Sequence[int] = DEFAULT_DELAY_LEVELS,
) -> int:
    """Return the tags code that dispatch puts into the entry of a record.

    In the topic of scheduled messages it is the delivery time (milliseconds), otherwise the hash
    of the tags.
    """
    level = min(delay_level(props), len(levels)) if topic == SCHEDULE_TOPIC else 0
    if level > 0:
        return delivery_time(level, store_timestamp, levels)
    return tags_code(props.get(properties.TAGS))


def delay_level(props: Mapping[str, str]) -> int:
    """Return the DELAY property as a number, or 0 if it is not a number that fits in 32 bits."""
    match = _INTEGER.fullmatch(props.get(properties.DELAY, ""))
    level = int(match[1] + match[2]) if match else 0
    return level if -(1 << 31) <= level < 1 << 31 else 0
