"""The topics to which the lane puts: what the ordinary path has decided about each."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import numpy as np

from mqlake.broker.lane.layout import (
    FIRST_QUEUE,
    NAME_LENGTH,
    NAME_SIZE,
    QUEUES,
    ROUTE_SIZE,
    TAKES_BATCHES,
    TAKES_LITES,
    TOPIC_ROWS,
)
from mqlake.broker.lane.user_table import Permissions

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Ints, Longs

MOST_TOPICS: Final = 1 << 15
"""Topics that are remembered. Beyond it, all are dropped."""
MOST_QUEUES: Final = 1 << 18
"""Queues of all of them."""
MOST_OF_TOPIC: Final = 1 << 10
"""Queues of one topic. To remember more takes longer than many sends, and few such topics would
displace all others.
"""
_SLOTS: Final = 4 * MOST_TOPICS
_NAME_AT: Final = 8


class LaneTopics:
    """Topics by name, and their queues, in arrays that the kernel reads.

    Attributes:
        slots: i4[n], a hash table of topic numbers plus 1.
        names: u1[n], the name of each topic, in a row of NAME_SIZE.
        numbers: i8[TOPIC_ROWS, n]: the length of each name, the number of the topic's first queue,
            and of its queues, whether batches are put message by message, and whether messages may
            be put to lite topics of it.
        routes: u1[n], in rows of ROUTE_SIZE.
        places: i8[n], the place of each queue in `QueueOffsets.ends`, plus 1; 0 if it must be asked
            for.
        permissions: which users may send to which topic.
        seed: of the hash table: unknown to those who name topics.
        queues: the topic and the id of each queue.
    """

    def __init__(self) -> None:
        self.slots: Ints = np.zeros(_SLOTS, np.int32)
        self.names: Bytes = np.zeros(MOST_TOPICS * NAME_SIZE, np.uint8)
        self.numbers: Longs = np.zeros((TOPIC_ROWS, MOST_TOPICS), np.int64)
        self.routes: Bytes = np.zeros(MOST_TOPICS * ROUTE_SIZE, np.uint8)
        self.places: Longs = np.zeros(MOST_QUEUES, np.int64)
        self.permissions = Permissions(MOST_TOPICS)
        self.seed = np.uint64(secrets.randbits(64))
        self.queues: list[tuple[str, int]] = []
        self._used = 0

    def clear(self) -> None:
        """Forget everything."""
        self.slots[:] = 0
        self.forget_places()
        self.permissions.forget()
        self.queues.clear()
        self._used = 0

    def forget_places(self) -> None:
        """Ask for the place of each queue again."""
        self.places[: len(self.queues)] = 0

    def name(self, number: int) -> str:
        """Return the name of a topic, by its place in the table."""
        at = number * NAME_SIZE + _NAME_AT
        return self.names[at : at + int(self.numbers[NAME_LENGTH, number])].tobytes().decode()

    def add(
        self,
        name: str,
        queues: int,
        route: bytes,
        *,
        takes_batches: bool = False,
        takes_lites: bool = False,
    ) -> bool:
        """Remember a topic that is not in the table; return whether that is possible.

        Args:
            takes_batches: whether each message of a batch becomes a record of its own.
            takes_lites: whether messages may be put to lite topics of it.
        """
        data = name.encode()
        is_small = len(data) <= NAME_SIZE - _NAME_AT and len(route) <= ROUTE_SIZE
        if not is_small or queues > MOST_OF_TOPIC:
            return False
        if self._used == MOST_TOPICS or len(self.queues) + queues > MOST_QUEUES:
            self.clear()
        # Imported late: without compiled kernels, there is no lane.
        from mqlake.broker.lane.compiled.topics import enter

        number, row, at = self._used, self._used * NAME_SIZE + _NAME_AT, self._used * ROUTE_SIZE
        self.names[row : row + len(data)] = np.frombuffer(data, np.uint8)
        self.routes[at : at + len(route)] = np.frombuffer(route, np.uint8)
        self.numbers[NAME_LENGTH, number], self.numbers[QUEUES, number] = len(data), queues
        self.numbers[FIRST_QUEUE, number] = len(self.queues)
        self.numbers[TAKES_BATCHES, number] = takes_batches
        self.numbers[TAKES_LITES, number] = takes_lites
        self.queues += [(name, queue_id) for queue_id in range(queues)]
        self._used += 1
        enter(self.slots, self.names, row, len(data), self.seed, number)
        return True
