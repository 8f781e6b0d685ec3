"""What a task could not read: it raises an error, or is counted and logged."""

from __future__ import annotations

from mqlake.errors import StoreError
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.brokers import name_of
from mqlake.query.reading.log import logger

log = logger()


class LiveLosses:
    """Messages that are missing in a task.

    Args:
        fail: whether the first one raises an error.
    """

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail
        self._count = 0
        self._first = ""

    def lost(self, queue: MessageQueue, offset: int, count: int, reason: str) -> None:
        """Report a number of missing messages from a queue offset on.

        Raises:
            StoreError: losses are not tolerated.
        """
        many = "1 message" if count == 1 else f"{count} messages"
        what = f"{name_of(queue)}: {many} at offset {offset}: {reason}"
        if self._fail:
            raise StoreError(f"{what}; set failOnDataLoss to false to skip lost messages")
        self._first = self._first or what
        self._count += count

    def another_queue(self, queue: MessageQueue, offset: int) -> None:
        """Report that the record at a queue offset is not the one that the query has read.

        Raises:
            StoreError: losses are not tolerated.
        """
        what = (
            f"{name_of(queue)}: the message at offset {offset} is not the one that this query "
            "has read: the topic, or the broker's store, was deleted and created again; "
            "start a new query, with a new checkpoint, to read it from its beginning"
        )
        if self._fail:
            raise StoreError(f"{what}; set failOnDataLoss to false to continue at this offset")
        log.warning("%s", what)

    def report(self) -> None:
        """Log what was skipped."""
        if self._first:
            log.warning("skipped %d messages; the first: %s", self._count, self._first)
