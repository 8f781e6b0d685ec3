"""Read a queue for a pull.

Tags are left to the store, which goes by their hashes; the consumer compares the tags themselves.
A condition over properties needs the records decoded.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlake.broker.filter.subscriptions import Choice
from mqlake.store.reads.live_reads import LiveReads
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.results import Status
from mqlake.store.settings import StoreSettings

_ENTRY_SIZE = 20


class Found(NamedTuple):
    """What a pull finds.

    Attributes:
        messages: the records as they lie in the log.
        next_offset: the queue offset to pull from next.
        min_offset, max_offset: of the queue.
    """

    status: Status
    messages: list[memoryview]
    next_offset: int
    min_offset: int
    max_offset: int


class Wanted(NamedTuple):
    """What a pull wants: messages of a queue, so many of so many bytes in all at most."""

    topic: str
    queue_id: int
    offset: int
    messages: int
    bytes: int
    choice: Choice


def read(reads: LiveReads, wanted: Wanted, settings: StoreSettings) -> Found:
    """Return the chosen messages from an offset on, as many as limits allow, perhaps none."""
    topic, queue_id, offset, most, most_bytes, choice = wanted
    if choice.condition is None:
        got = reads.get(
            topic, queue_id, offset, most, tags=choice.tags, max_bytes=most_bytes, exact=False
        )
        return Found(got.status, got.raw, got.next_offset, got.min_offset, got.max_offset)
    end = offset + max(settings.max_filter_message_size // _ENTRY_SIZE, most)
    chosen: list[memoryview] = []
    size, at = 0, offset
    while True:
        count = min(most - len(chosen), end - at)
        got = reads.get(topic, queue_id, at, count, max_bytes=most_bytes - size)
        at = got.next_offset if got.status in _MOVES else at
        for message in _chosen(got, choice):
            chosen.append(message)
            size += len(message)
        is_full = len(chosen) >= most or size >= most_bytes
        if got.status is not Status.FOUND or is_full or at >= min(end, got.max_offset):
            break
    if chosen:
        status = Status.FOUND
    elif at > offset:
        status = Status.NO_MATCHED_MESSAGE
    else:
        status, at = got.status, got.next_offset
    return Found(status, chosen, at, got.min_offset, got.max_offset)


_MOVES = frozenset((Status.FOUND, Status.NO_MATCHED_MESSAGE, Status.MESSAGE_WAS_REMOVING))


def _chosen(got: LiveGetResult, choice: Choice) -> list[memoryview]:
    pairs = zip(got.raw, got.records, strict=True)
    return [raw for raw, record in pairs if choice.holds(record.properties)]
