"""What `put_messages` and its caller both know: where numbers are, and what they mean.

The kernel puts packed messages (`dispatch.compiled.put_messages`). `state` is an array of bytes,
with big-endian numbers; `out` an i8[n] in which the kernel tells what it has done.
"""

from __future__ import annotations

from typing import Final, NamedTuple

FIELDS: Final = (
    "topic",
    "body",
    "tags",
    "keys",
    "properties",
    "queue_id",
    "flag",
    "sys_flag",
    "born_timestamp",
    "born_host",
    "reconsume_times",
    "prepared_transaction_offset",
    "delay_level",
    "encoded_properties",
)
"""The values of a message, in the order in which it is packed."""

PACKED_AT: Final = 11
"""Where a message, or the list of messages, begins if it is packed after LEAD."""
LEAD: Final = bytes(8)
"""Packed before messages: kernels load whole words."""

# Rows of a table: the length of a text, a number that belongs to it, what is known of both, the
# text. Of queues: the number is the queue id; the value is the magic number of its records, and
# then comes the number of the queue. Of hosts: the value is the size, and then come the bytes.
LENGTH_AT, NUMBER_AT, VALUE_AT, MORE_AT, KEY_AT = 0, 8, 16, 24, 48
COUNT_AT: Final = -8
"""Where the number of rows is, from the first slot on."""
PENDING, UNUSABLE = 0, -1
"""Values of a row: the caller has to fill it in; messages with it are not put by the kernel."""


class KnownTable(NamedTuple):
    """Where a table is in the state.

    Attributes:
        slots_at, slots: position and number of the slots, 4 bytes each: a power of 2.
        rows_at, row_size: position of the rows, and bytes of each.
        most: maximum number of rows.
    """

    slots_at: int
    slots: int
    rows_at: int
    row_size: int
    most: int


def _table(at: int, row_size: int, most: int) -> tuple[KnownTable, int]:
    slots_at, slots = at - COUNT_AT, 2 * most
    rows_at = slots_at + 4 * slots
    return KnownTable(slots_at, slots, rows_at, row_size, most), rows_at + most * row_size


# The state.
LONGEST_BODY_AT, APPENDS_CRC_AT, SEED_AT, STORE_SIZE_AT, STORE_HOST_AT = range(0, 40, 8)
TEXTS_AT: Final = STORE_HOST_AT + 24
TEXTS: Final = 48 << 10
"""Bytes for the properties of one message."""
QUEUES, _END = _table(TEXTS_AT + TEXTS, KEY_AT + 256, 1 << 16)
HOSTS, RECORDS_AT = _table(_END, KEY_AT + 64, 1 << 12)
RECORDS: Final = 1 << 20
"""Bytes of the records of one call."""
STATE_SIZE: Final = RECORDS_AT + RECORDS

# What the kernel tells: why it ended, the position of the next message and of the one after that,
# number and bytes of records, whether they are in the log, the row to be filled in. Then, from the
# position FIELDS_AT on, scratch; and a column each of MOST numbers.
REASON, POSITION, FOLLOWING, COUNT, SIZE, IS_PUBLISHED, ROW = range(7)
FIELDS_AT: Final = 8
MOST: Final = 1024
"""Messages of one call."""
OFFSETS, SIZES, QUEUE_OFFSETS, QUEUE_NUMBERS = (
    FIELDS_AT + 3 * len(FIELDS) + column * MOST for column in range(4)
)
OUT_SIZE: Final = QUEUE_NUMBERS + MOST

# Why the kernel ended: all is done; the next message does not fit before the end, is unusual, may
# ask for a delay; a row is to be filled in; a table has no room.
DONE, NO_ROOM, UNUSUAL, MAY_WAIT, NEW_ROW, TABLE_FULL = range(6)
