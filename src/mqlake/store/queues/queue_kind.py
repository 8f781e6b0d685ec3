"""The two kinds of consume queues, and the location of their files.

Upstream: `CQType`.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlake.formats import batch_consume_queue, consume_queue
from mqlake.storage.protocol import Directory


class QueueKind(NamedTuple):
    """A kind of consume queue: the directory of its files, and the bytes of an entry.

    The first 20 bytes of an entry of either kind are a `QueueEntry`.
    """

    directory: str
    entry_size: int

    def file_size(self, wanted: int) -> int:
        """Return the size of a file for a configured size: whole entries."""
        return max(1, -(-wanted // self.entry_size)) * self.entry_size


SIMPLE = QueueKind("consumequeue", consume_queue.ENTRY_SIZE)
BATCH = QueueKind("batchconsumequeue", batch_consume_queue.UNIT_SIZE)


def batch_topics(directory: Directory) -> frozenset[str]:
    """Return the topics with batch consume queues: by their settings, and by their files."""
    # Imported late: all configuration files come with them, and most readers need none.
    from mqlake.formats.config import Topics
    from mqlake.store.config.config_files import read_config

    table = (read_config(directory, Topics) or Topics()).topic_config_table
    return frozenset(directory.names(BATCH.directory)).union(
        name for name, topic in table.items() if topic.has_batch_queues
    )
