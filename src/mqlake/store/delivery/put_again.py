"""Messages of the log that are put again: delayed ones when due, half messages when settled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mqlake.errors import DiskError, StoreError
from mqlake.formats.config.topics import Topic
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.file_name import is_safe_topic
from mqlake.formats.properties import REAL_QID, REAL_TOPIC
from mqlake.formats.record import MAX_TOPIC_V1, Record
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.settings import StoreSettings
from mqlake.store.stored import Stored, read_stored

Put = Callable[[Message], PutResult]
"""Appends a message; a refusal is also a result."""

_QUEUE_ID = re.compile("[0-9]{1,9}")


def read_entry(log: OwnedCommitLog, entry: QueueEntry) -> Stored | None:
    """Return the record of a queue entry, None if it is not a good record, or retention removed it.

    Raises:
        DiskError: the log cannot be read now, or a file of it was moved away; the message must not
            be given up for that.
    """
    try:
        stored = read_stored(log.read(entry.physical_offset, entry.size))
    except DiskError:
        raise
    except StoreError:
        return None
    is_there = stored is not None and stored.record.physical_offset == entry.physical_offset
    return stored if is_there else None


def read_at(log: OwnedCommitLog, found: Record) -> Stored | None:
    """Return a record that was read before, with its original properties."""
    return read_entry(log, QueueEntry(found.physical_offset, found.size, 0))


def real_queue(properties: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the topic and the queue that a message was sent to, None if it does not contain
    them.
    """
    topic, queue_id = properties.get(REAL_TOPIC), properties.get(REAL_QID, "")
    if not topic or not _QUEUE_ID.fullmatch(queue_id):
        return None
    return topic, int(queue_id)


def readable_queue(topic: Topic | None, queue_id: int) -> int:
    """Return the queue in which consumers find a message that was sent to a queue.

    A topic may have lost queues since then: the messages of such a queue go to one that is both
    written and read, all to the same one, so that they keep their order. Upstream puts them to the
    old queue, which nobody reads.
    """
    if topic is None:
        return queue_id
    read, write = topic.read_queue_nums, topic.write_queue_nums
    # A topic that is being emptied has queues to read only.
    count = min(read, write) or read
    return queue_id % count if 0 < count <= queue_id else queue_id


def is_usable_topic(topic: str, settings: StoreSettings) -> bool:
    """Return whether messages of a topic are accepted; messages that are put under another topic
    are checked here.
    """
    data = topic.encode("utf-8", "surrogatepass")
    is_short = len(data) <= MAX_TOPIC_V1 or settings.auto_message_version_on_topic_len
    return is_short and is_safe_topic(data)
