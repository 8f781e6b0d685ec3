"""Read a queue for a pull.

Tags are left to the store, which goes by their hashes; the consumer compares the tags themselves.
A condition over properties needs the records decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from mqlake.broker.filter.subscriptions import Choice
from mqlake.formats.batch_consume_queue import inner_batch
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.store.port import LiveGetResult, Reads
from mqlake.store.results import Status
from mqlake.store.settings import StoreSettings

_MOST_AT_ONCE = 256
"""Messages that are decoded at once at most, where few are chosen."""
_LOOKS = 32
_LONGEST = 0.005
"""Seconds after which what was chosen among `_LOOKS` messages or a multiple of them is enough: a
condition may take long to evaluate."""


class Found(NamedTuple):
    """What a pull finds.

    Attributes:
        messages: how many.
        pieces: their records as they lie in the log, one behind the other.
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
    """What a pull wants: messages of a queue, so many of so many bytes in all at most."""

    topic: str
    queue_id: int
    offset: int
    messages: int
    bytes: int
    choice: Choice


def read(reads: Reads, wanted: PullRead, settings: StoreSettings) -> Found:
    """Return the chosen messages from an offset on, as many as limits allow, perhaps none."""
    topic, queue_id, offset, most, most_bytes, choice = wanted
    if choice.condition is None:
        got = reads.get(
            topic, queue_id, offset, most, tags=choice.tags, max_bytes=most_bytes, exact=False
        )
        return Found(
            got.status, len(got), got.pieces, got.next_offset, got.min_offset, got.max_offset
        )
    return _read_by_condition(reads, wanted, settings)


def warm_up(reads: Reads, wanted: PullRead, settings: StoreSettings) -> Callable[[], object] | None:
    """Return what has to be done in another thread before `read`, None where that keeps nobody."""
    topic, queue_id, offset, most, _, choice = wanted
    if choice.condition is None:
        return reads.warm_up(topic, queue_id, offset, most, tags=choice.tags, exact=False)
    return reads.warm_up(
        topic, queue_id, offset, max(settings.max_filter_message_size // ENTRY_SIZE, most)
    )


def _read_by_condition(reads: Reads, wanted: PullRead, settings: StoreSettings) -> Found:
    offset, count = wanted.offset, wanted.messages
    end = offset + max(settings.max_filter_message_size // ENTRY_SIZE, count)
    chosen: list[memoryview] = []
    room, at = wanted.bytes, offset
    until, looked_at = perf_counter() + _LONGEST, 0
    while True:
        got = reads.get(
            wanted.topic, wanted.queue_id, at, min(count, end - at), max_bytes=wanted.bytes
        )
        if got.status not in _MOVES:
            break
        at = got.next_offset
        for message, record in zip(got.raw, got.records, strict=True):
            if wanted.choice.holds(record.properties):
                if len(chosen) == wanted.messages or (chosen and len(message) > room):
                    return _found(got, chosen, record.queue_offset)
                chosen.append(message)
                room -= len(message)
            looked_at += 1
            if looked_at % _LOOKS == 0 and perf_counter() >= until:
                base, size = inner_batch(record.properties, record.queue_offset)
                return _found(got, chosen, base + size)
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
    """Return what was chosen before a queue offset, at which others go on."""
    status = Status.FOUND if chosen else Status.NO_MATCHED_MESSAGE
    return Found(status, len(chosen), chosen, at, got.min_offset, got.max_offset)


# A read that finds something, or nothing, at the entries it went through.
_MOVES = frozenset((Status.FOUND, Status.NO_MATCHED_MESSAGE, Status.MESSAGE_WAS_REMOVING))
