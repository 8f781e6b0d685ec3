"""Offsets past the end of their queue: what a consumer that asks for one, or commits one, gets.

A queue that ends before the offset of a consumer has lost its messages: its topic was deleted and
created again, or the log was cut or restored. RocketMQ 5 lets the consumer continue at the end, so
it skips all messages of the new topic without a word; RocketMQ 4.9 lets it begin at 0 if the queue
does.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import NamedTuple

from mqlake.broker.settings import BrokerSettings
from mqlake.store.live_settings import Current
from mqlake.store.port import Store
from mqlake.store.results import QueueRange

REPORT = 10.0
"""Seconds between two reports."""

_MOST_REPORTED = 1000

_log = logging.getLogger(__name__)


class GroupQueue(NamedTuple):
    """A queue as a group consumes it."""

    group: str
    topic: str
    queue_id: int


class PastEnd:
    """Corrects offsets past the end of a queue (`correctOffsetPastEnd`).

    Attributes:
        corrected: how many pulls were sent to another offset, since the start.
        refused: how many commits were ignored, since the start.
    """

    def __init__(self, settings: Current[BrokerSettings], store: Store) -> None:
        self._settings = settings
        self._store = store
        self._reads, self._incarnations = store.reads, store.incarnations
        self._offsets = store.config.consumer_offsets
        self._notes = Counter[str]()
        self._unnamed = 0
        self.corrected = self.refused = 0

    def next_offset(self, at: GroupQueue, asked: int, found: QueueRange) -> int:
        """Return where a group continues that asked for an offset past the end of a queue.

        Its committed offset is the best guess, and messages that it may not have seen come before
        those that it has: at least once.
        """
        low, high = found
        self.corrected += 1
        offset, why = high, "the end of the queue"
        if self._settings.now.correct_offset_past_end:
            committed = self._offsets.query(*at)
            if committed is not None and committed <= high:
                offset, why = max(committed, low), "the group's committed offset"
            elif self._incarnations.before(at.topic):
                offset, why = low, "the beginning of the queue: the topic was created again"
            elif committed is None and low == 0:
                offset, why = low, "the beginning of the queue: the group has no committed offset"
        self._note(
            f"group {at.group} asked for queue offset {asked} of topic {at.topic}, queue "
            f"{at.queue_id}, which has the offsets {low} to {high}: it continues at {offset}, {why}"
        )
        return offset

    def refuses(self, at: GroupQueue, offset: int) -> bool:
        """Return whether a group's commit is ignored: its offset is past the end of the queue.

        A consumer of a topic that was deleted and created again would skip messages by it. On a
        slave, the queue may only lag.
        """
        settings = self._settings.now
        if not settings.correct_offset_past_end or settings.is_slave:
            return False
        high = self._reads.queue(at.topic, at.queue_id).max_offset
        if offset > high and self._store.dispatching.catch_up():
            high = self._reads.queue(at.topic, at.queue_id).max_offset
        if offset <= high:
            return False
        self.refused += 1
        self._note(
            f"group {at.group} committed queue offset {offset} of topic {at.topic}, queue "
            f"{at.queue_id}, which ends at {high}: ignored"
        )
        return True

    def _note(self, text: str) -> None:
        if len(self._notes) < _MOST_REPORTED or text in self._notes:
            self._notes[text] += 1
        else:
            self._unnamed += 1

    def report(self) -> None:
        """Log what happened since the last report: clients may repeat it often."""
        for text, count in self._notes.items():
            _log.warning("%s (%d times)", text, count)
        if self._unnamed:
            _log.warning("%d more offsets past the end of a queue", self._unnamed)
        self._notes.clear()
        self._unnamed = 0
