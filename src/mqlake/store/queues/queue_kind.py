"""The two kinds of consume queues, and the location of their files.

Upstream: `CQType`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlake.formats import batch_consume_queue, consume_queue
from mqlake.storage.protocol import Directory

if TYPE_CHECKING:
    from mqlake.formats.config.topics import Topic


class QueueKind(NamedTuple):
    """A kind of consume queue.

    The first 20 bytes of an entry of either kind are a `QueueEntry`.

    Attributes:
        directory: of its files.
        entry_size: bytes of an entry.
        has_batches: whether an entry may be a batch that is one record. Otherwise each entry is one
            message, and a batch is stored as so many records.
        min_of_empty: the answer to a request for the first offset of a queue without an entry.
    """

    directory: str
    entry_size: int
    has_batches: bool
    min_of_empty: int

    def file_size(self, wanted: int) -> int:
        """Return the size of a file for a configured size: whole entries."""
        return max(1, -(-wanted // self.entry_size)) * self.entry_size


SIMPLE = QueueKind("consumequeue", consume_queue.ENTRY_SIZE, False, 0)
BATCH = QueueKind("batchconsumequeue", batch_consume_queue.UNIT_SIZE, True, -1)


def kind_of(topic: Topic | None) -> QueueKind:
    """Return the kind of a topic's queues, by its settings."""
    return BATCH if topic is not None and topic.has_batch_queues else SIMPLE


def batch_topics(directory: Directory) -> frozenset[str]:
    """Return the topics with batch consume queues: by their settings, and by their files."""
    # Imported late: all configuration files come with them, and most readers need none.
    from mqlake.formats.config import Topics
    from mqlake.store.config.config_files import read_config

    table = (read_config(directory, Topics) or Topics()).topic_config_table
    return frozenset(directory.names(BATCH.directory)).union(
        name for name, topic in table.items() if kind_of(topic) is BATCH
    )
