"""Choose messages by tag expressions such as "TagA || TagB".

Upstream: `FilterAPI.buildSubscriptionData`, `DefaultMessageFilter`.
"""

from __future__ import annotations

from mqlake.formats import java_string
from mqlake.formats.consume_queue import SCHEDULE_TOPIC, QueueEntry
from mqlake.formats.record import Record

ALL = "*"

_INT_BITS = 1 << 31


class TagFilter:
    """A tag expression: tags separated by `||`; None, "" and "*" choose all messages."""

    def __init__(self, expression: str | None) -> None:
        tags = (expression or ALL).split("||")
        self._tags = {tag.strip() for tag in tags if tag.strip()}
        self._codes = {java_string.hash_code(tag) for tag in self._tags}
        self._chooses_all = not self._tags or ALL in self._tags

    @property
    def chooses_all(self) -> bool:
        """Return whether no message is left out."""
        return self._chooses_all

    def codes(self, topic: str) -> list[int] | None:
        """Return the tags codes that `may_match` compares, None if only the record can tell."""
        return None if self._chooses_all or topic == SCHEDULE_TOPIC else sorted(self._codes)

    def may_match(self, topic: str, entry: QueueEntry) -> bool:
        """Return whether the tags code of an entry can be that of a chosen tag.

        Codes beyond 32 bits are addresses in the consume queue extension, and in the topic of
        scheduled messages codes are delivery times: there, only the record can tell.
        """
        if self._chooses_all or topic == SCHEDULE_TOPIC:
            return True
        return not -_INT_BITS <= entry.tags_code < _INT_BITS or entry.tags_code in self._codes

    def matches(self, record: Record) -> bool:
        """Return whether a record has a chosen tag."""
        return self._chooses_all or record.tags in self._tags
