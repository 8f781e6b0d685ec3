"""The topics of stored messages, for requests that name a message by its physical offset."""

from __future__ import annotations

from mqlake.formats.properties import REAL_TOPIC
from mqlake.formats.topic_names import WAITING
from mqlake.store.port import LiveReads
from mqlake.store.stored import read_stored


class MessageTopics:
    """Finds topics in the commit log."""

    def __init__(self, reads: LiveReads) -> None:
        self._reads = reads

    def topic_at(self, physical_offset: int) -> str | None:
        """Return the topic of a message; None without a message at this physical offset.

        Of a message that waits for its delivery time, or for the end of its transaction, this is
        the topic that it is for.
        """
        raw = self._reads.raw_at(physical_offset)
        stored = None if raw is None else read_stored(raw)
        if stored is None:
            return None
        record = stored.record
        if record.topic in WAITING:
            return record.properties.get(REAL_TOPIC, record.topic)
        return record.topic
