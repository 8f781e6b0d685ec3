"""What the kernels of light queues get and fill (`light_kernel`): arrays, and their descriptions.

The arrays are in the machine's byte order.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.batch import Bytes, Longs

MESSAGE = np.dtype(
    [
        ("name_hash", "u8"),  # of the light queue's name
        ("physical_offset", "i8"),
        ("queue_offset", "i8"),  # in the light queue
        ("name_at", "i4"),  # position of the light queue's name in the batch's buffer
        ("name_length", "i4"),
        ("size", "i4"),  # of the record
        ("topic", "i4"),  # number of the record's topic: see `LightTopics`
    ],
    align=True,
)

NEWEST = np.dtype(
    [
        ("name_hash", "u8"),
        ("physical_offset", "i8"),
        ("queue_offset", "i8"),
        ("number", "i4"),  # of the entry in its file; 0 in a row that is free
        ("size", "i4"),
    ],
    align=True,
)
NEWEST_ROW = Struct("=Qqqii")

LightMessages = npt.NDArray[np.void]
"""An array of MESSAGE."""
NewestRows = npt.NDArray[np.void]
"""An array of NEWEST: a hash table (`kernels.rows`)."""


class LightBuffer(NamedTuple):
    """A file of light queues in memory.

    Attributes:
        data: all its bytes.
        slots: how many it has.
        capacity: how many entries fit.
        base: physical offset of the segment's first byte.
        following: number that the next entry gets.
        queues: queues that have an entry.
    """

    data: Bytes
    slots: int
    capacity: int
    base: int
    following: int
    queues: int


class Newest(NamedTuple):
    """The newest entry of each queue.

    Attributes:
        rows: the hash table.
        used: i8[1], how many of them are in use.
    """

    rows: NewestRows
    used: Longs


class LightBounds(NamedTuple):
    """Which records count, by their physical offsets.

    Attributes:
        low: no message before it is appended.
        alive: no entry before it keeps a later message from having a lower queue offset.
    """

    low: int
    alive: int


class LightAppended(NamedTuple):
    """How far some messages were appended.

    Attributes:
        end: row after the last one that was looked at; the others wait until the table has grown.
        following, queues: of the file's header now.
        refused: row of the first message whose queue offset is not above its queue's newest one;
            -1 without one.
    """

    end: int
    following: int
    queues: int
    refused: int


def name_hash(name: bytes, seed: int) -> int:
    """Return the hash of a light queue's name."""
    key = seed.to_bytes(8, "big")
    return int.from_bytes(blake2b(name, digest_size=8, key=key).digest(), "big")
