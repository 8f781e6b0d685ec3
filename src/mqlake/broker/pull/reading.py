"""Read a queue for a pull.

The store filters tags by their hashes; the consumer compares the tags themselves. A condition on
properties needs decoded records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from mqlake.broker.filter.subscriptions import Choice
from mqlake.broker.filter.verdicts import UndecidedError, Verdicts
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.store.port import Dispatching, LiveGetResult, LiveReads
from mqlake.store.results import Status
from mqlake.store.settings import StoreSettings

_MOST_AT_ONCE = 256
"""Maximum number of messages that are decoded at once if few are chosen."""


class Found(NamedTuple):
    """The result of a pull.

    Attributes:
        messages: the number of messages.
        pieces: their records as they are in the log, consecutively.
        next_offset: the queue offset to pull from next.
        min_offset, max_offset: of the queue.
    """

    status: Status
    messages: int
    pieces: list[memoryview]
    next_offset: int
    min_offset: int
    max_offset: int


class PullRead(NamedTuple):
    """The request of a pull: messages of a queue, with a maximum number and total size."""

    topic: str
    queue_id: int
    offset: int
    messages: int
    bytes: int
    choice: Choice


class SharedRead:
    """What was read for a waiting pull, for others that want the same: a group each, thousands.

    It is kept for a round of the event loop, and only until more is dispatched.

    Args:
        read: reads for one pull.
    """

    def __init__(self, read: Callable[[PullRead], Found], dispatching: Dispatching) -> None:
        self._read, self._dispatching = read, dispatching
        self._last: tuple[int, PullRead, Found] | None = None

    def read(self, wanted: PullRead) -> Found:
        """Return the messages that a pull wants."""
        count, last = self._dispatching.count, self._last
        if last is not None and last[0] == count and last[1] == wanted:
            return last[2]
        found = self._read(wanted)
        if found.messages and wanted.choice.condition is None:
            if last is None:
                asyncio.get_running_loop().call_soon(self._forget)
            self._last = count, wanted, found
        return found

    def _forget(self) -> None:
        # The bytes are views of the log, whose files may be removed.
        self._last = None


def read(
    reads: LiveReads, wanted: PullRead, settings: StoreSettings, verdicts: Verdicts | None = None
) -> Found:
    """Return the chosen messages from an offset on, within the limits; may be empty.

    A condition may take long to evaluate: after a slice, the messages chosen so far are enough.

    Args:
        verdicts: of the condition; None for new ones.

    Raises:
        UndecidedError: even the first message takes longer than a slice.
    """
    topic, queue_id, offset, most, most_bytes, choice = wanted
    if choice.condition is None:
        got = reads.get(
            topic, queue_id, offset, most, tags=choice.tags, max_bytes=most_bytes, exact=False
        )
        return Found(
            got.status, len(got), got.pieces, got.next_offset, got.min_offset, got.max_offset
        )
    return _read_by_condition(reads, wanted, settings, verdicts or Verdicts(choice))


def warm_up(
    reads: LiveReads, wanted: PullRead, settings: StoreSettings
) -> Callable[[], object] | None:
    """Return a job to run in another thread before `read`, or None if `read` would not block."""
    topic, queue_id, offset, most, _, choice = wanted
    if choice.condition is None:
        return reads.warm_up(topic, queue_id, offset, most, tags=choice.tags, exact=False)
    return reads.warm_up(
        topic, queue_id, offset, max(settings.max_filter_message_size // ENTRY_SIZE, most)
    )


def _read_by_condition(
    reads: LiveReads, wanted: PullRead, settings: StoreSettings, verdicts: Verdicts
) -> Found:
    offset, count = wanted.offset, wanted.messages
    end = offset + max(settings.max_filter_message_size // ENTRY_SIZE, count)
    chosen: list[memoryview] = []
    room, at = wanted.bytes, offset
    is_first = True
    while True:
        got = reads.get(
            wanted.topic, wanted.queue_id, at, min(count, end - at), max_bytes=wanted.bytes
        )
        if got.status not in _MOVES:
            break
        at = got.next_offset
        for message, record in zip(got.raw, got.records, strict=True):
            try:
                holds = verdicts.holds(record)
            except UndecidedError:
                if is_first:
                    raise
                return _found(got, chosen, record.queue_offset)
            is_first = False
            if holds:
                if len(chosen) == wanted.messages or (chosen and len(message) > room):
                    return _found(got, chosen, record.queue_offset)
                chosen.append(message)
                room -= len(message)
        if at >= min(end, got.max_offset):
            break
        count = min(2 * count, _MOST_AT_ONCE)
    if chosen:
        status = Status.FOUND
    else:
        status, at = (
            (Status.NO_MATCHED_MESSAGE, at) if at > offset else (got.status, got.next_offset)
        )
    return Found(status, len(chosen), chosen, at, got.min_offset, got.max_offset)


def _found(got: LiveGetResult, chosen: list[memoryview], at: int) -> Found:
    """Return what was chosen before a queue offset; the next read continues there."""
    status = Status.FOUND if chosen else Status.NO_MATCHED_MESSAGE
    return Found(status, len(chosen), chosen, at, got.min_offset, got.max_offset)


# Statuses of a read that examined entries, whether or not a message matched.
_MOVES = frozenset((Status.FOUND, Status.NO_MATCHED_MESSAGE, Status.MESSAGE_WAS_REMOVING))
