"""Divide a batch's queue entries into runs: entries of one queue with consecutive offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.derived.queue_entries import group
from mqlake.dispatch.queue_table import QueueTable
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.formats.file_name import check_topic_name
from mqlake.storage.protocol import Directory
from mqlake.store.queues.queue_files import queue_ids, topic_names
from mqlake.store.queues.queue_kind import QueueKind


class QueueName(NamedTuple):
    """The name of one consume queue."""

    topic: str
    queue_id: int

    @property
    def path(self) -> str:
        """The path of its files, relative to the store or to a rebuild's output.

        Raises:
            FormatError: the topic's name is not safe as part of a path.
        """
        return f"consumequeue/{check_topic_name(self.topic)}/{self.queue_id}"


def queues_of(directory: Directory, kind: QueueKind) -> Iterator[QueueName]:
    """Yield the queues of a kind that have files."""
    for topic in topic_names(directory, kind):
        for queue_id in queue_ids(directory, topic, kind):
            yield QueueName(topic, queue_id)


class EntryRun(NamedTuple):
    """Entries (20 bytes each) of one queue, the first of which has queue offset `first`."""

    queue: QueueName
    first: int
    entries: memoryview

    @property
    def end(self) -> int:
        """The queue offset after the last entry."""
        return self.first + len(self.entries) // ENTRY_SIZE


class QueueNames:
    """The queues of a scan's table by number, each decoded once; None for those left out."""

    def __init__(self, table: QueueTable, left_out: Collection[str] = ()) -> None:
        self._table = table
        self._left_out = left_out
        self._names: list[QueueName | None] = []

    def __getitem__(self, number: int) -> QueueName | None:
        while len(self._names) <= number:
            topic, queue_id = self._table[len(self._names)]
            queue = QueueName(topic.decode(), queue_id)
            self._names.append(None if queue.topic in self._left_out else queue)
        return self._names[number]


def runs(batch: Batch, names: QueueNames) -> Iterator[EntryRun]:
    """Yield each entry once of a batch that was scanned with `Want.DISPATCH`."""
    entries, starts, queue_offsets = group(batch)
    breaks = np.flatnonzero(np.diff(queue_offsets) != 1) + 1
    edges = np.union1d(starts, breaks)
    numbers = np.searchsorted(starts, edges[:-1], "right") - 1
    firsts = queue_offsets[edges[:-1]]
    data, edge = entries.data, (edges * ENTRY_SIZE).tolist()
    for index, (number, first) in enumerate(zip(numbers.tolist(), firsts.tolist(), strict=True)):
        queue = names[number]
        if queue is not None:
            yield EntryRun(queue, first, data[edge[index] : edge[index + 1]])
