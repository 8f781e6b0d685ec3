"""Number the queues that a scan meets: dense numbers instead of (topic, queue id)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.columns import QUEUE
from mqlake.formats import java_string
from mqlake.formats.consume_queue import SCHEDULE_TOPIC

_LEAD = 16
"""Bytes before the first topic in the arena, since kernels load whole words."""


class QueueTable:
    """From dense queue numbers, given in order of first appearance, to (topic bytes, queue id).

    It lives as long as a scan and only grows. Kernels read and fill the arrays:

        queues: QUEUE[capacity]     one row a queue
        arena:  u8[capacity]        the topics' bytes
        fill:   i8[2]               rows and bytes in use
        slots:  i4[2^k]             the compiled kernels' hash table: queue number + 1, or 0
        seed:   u8                  of their hash, random
    """

    def __init__(self) -> None:
        self.queues = np.zeros(0, QUEUE)
        self.arena = np.zeros(_LEAD, np.uint8)
        self.slots = np.zeros(0, np.int32)
        self.fill = np.array([0, _LEAD], np.int64)
        self.seed = np.uint64(secrets.randbits(64))

    def __len__(self) -> int:
        return int(self.fill[0])

    def __getitem__(self, number: int) -> tuple[bytes, int]:
        if not 0 <= number < len(self):
            raise IndexError(f"there is no queue {number} among {len(self)}")
        queue = self.queues[number]
        at, length = int(queue["topic_at"]), int(queue["topic_length"])
        return self.arena[at : at + length].tobytes(), int(queue["queue_id"])

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        return (self[number] for number in range(len(self)))

    def add(self, topic: bytes, queue_id: int) -> None:
        """Give a queue that is not in the table the next number."""
        self.reserve(1, len(topic))
        number, at = len(self), int(self.fill[1])
        self.arena[at : at + len(topic)] = np.frombuffer(topic, np.uint8)
        prefix = java_string.hash_code(java_string.decode(topic) + "#") & 0xFFFFFFFF
        scheduled = topic == SCHEDULE_TOPIC.encode()
        self.queues[number] = at, len(topic), queue_id, prefix, scheduled
        self.fill[:] = number + 1, at + len(topic)

    def reserve(self, queues: int, topic_bytes: int) -> None:
        """Make room for so many more queues, with so many bytes of topics in all."""
        self.queues = _with_room(self.queues, len(self) + queues)
        self.arena = _with_room(self.arena, int(self.fill[1]) + topic_bytes)


def _with_room(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    if length <= len(array):
        return array
    larger = np.zeros(max(length, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger
