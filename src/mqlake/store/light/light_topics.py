"""Which topics of a batch may have records in light queues."""

from __future__ import annotations

import numpy as np

from mqlake.dispatch.batch import Ints
from mqlake.dispatch.queue_table import QueueTable
from mqlake.formats.topic_names import DISCARDED_TOPIC, OF_GROUPS, WAITING

_WITHOUT = ("rmq_sys_", *OF_GROUPS, *sorted(WAITING), DISCARDED_TOPIC)
"""Beginnings of the topics whose records wait for another topic, or are copies of its records."""
_NONE = -1


class LightTopics:
    """Numbers the topics of the queues in a batch's table, in order of appearance."""

    def __init__(self) -> None:
        self._table: QueueTable | None = None
        self._numbers = dict[str, int]()
        self._names = list[str]()
        self._of_queues: Ints = np.zeros(0, np.int32)

    def of(self, table: QueueTable) -> Ints:
        """Return i4[n]: by the number of a queue, that of its topic; -1 if its records are in no
        light queue.
        """
        known = self._of_queues if table is self._table else self._of_queues[:0]
        if len(known) < len(table) or table is not self._table:
            names = (table[number][0].decode() for number in range(len(known), len(table)))
            more = np.array([self._number(name) for name in names], np.int32)
            self._table, self._of_queues = table, np.concatenate([known, more])
        return self._of_queues

    def _number(self, name: str) -> int:
        if name.startswith(_WITHOUT):
            return _NONE
        if name not in self._numbers:
            self._numbers[name] = len(self._names)
            self._names.append(name)
        return self._numbers[name]

    def name(self, number: int) -> str:
        """Return the name of a topic."""
        return self._names[number]
