"""What a query wants of a message: conditions that are all to hold.

They come from options and from Spark's filters; planning looks for what narrows the log, and
`row_filter` decides on each record. They are values: tasks get them pickled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from mqlake.store.log.scan import Queue

MOST = (1 << 63) - 1

NUMBERS = ("queueId", "queueOffset", "physicalOffset", "storeTimestamp")
"""Columns of whole numbers that conditions know; times are milliseconds."""

TEXTS = ("topic", "tags", "msgId", "uniqKey")
"""Columns of text that conditions know."""

Interval = tuple[int, int]

V = TypeVar("V")


class Between(msgspec.Struct, frozen=True):
    """A number is in [low, high]."""

    column: str
    low: int = -MOST
    high: int = MOST


class AnyNumber(msgspec.Struct, frozen=True):
    """A number is one of some."""

    column: str
    values: tuple[int, ...]


class AnyText(msgspec.Struct, frozen=True):
    """A text is one of some; null is none."""

    column: str
    values: tuple[str, ...]


class TopicMatches(msgspec.Struct, frozen=True):
    """The whole topic matches a regular expression."""

    pattern: str

    def holds(self, topic: str) -> bool:
        """Say whether a topic does."""
        return re.fullmatch(self.pattern, topic) is not None


class HasKey(msgspec.Struct, frozen=True):
    """One of some texts is among the message's KEYS, or its unique key."""

    keys: tuple[str, ...]


class InQueues(msgspec.Struct, frozen=True):
    """The message is in a queue, at a queue offset in that queue's [start, end).

    Half messages and ROLLBACK marks are in no queue, whatever offset they state.
    """

    ranges: dict[Queue, Interval]
    others: bool
    """Whether queues that are not named count, from their first offset on."""


Condition = Between | AnyNumber | AnyText | TopicMatches | HasKey | InQueues
Selection = tuple[Condition, ...]


def interval(selection: Selection, column: str) -> Interval:
    """Return the least and the greatest number that a column can have; low > high for none."""
    low, high = -MOST, MOST
    for one in selection:
        if isinstance(one, Between) and one.column == column:
            low, high = max(low, one.low), min(high, one.high)
        elif isinstance(one, AnyNumber) and one.column == column:
            low = max(low, min(one.values, default=MOST))
            high = min(high, max(one.values, default=-MOST))
    return low, high


def numbers(selection: Selection, column: str) -> frozenset[int] | None:
    """Return the numbers that a column can have, None where they are not listed."""
    return _common(
        frozenset(one.values)
        for one in selection
        if isinstance(one, AnyNumber) and one.column == column
    )


def texts(selection: Selection, column: str) -> frozenset[str] | None:
    """Return the texts that a column can have, None where they are not listed."""
    return _common(
        frozenset(one.values)
        for one in selection
        if isinstance(one, AnyText) and one.column == column
    )


def _common(sets: Iterable[frozenset[V]]) -> frozenset[V] | None:
    common: frozenset[V] | None = None
    for one in sets:
        common = one if common is None else common & one
    return common


def wants_topic(selection: Selection, topic: str) -> bool:
    """Say whether messages of a topic can be wanted."""
    for one in selection:
        if isinstance(one, AnyText) and one.column == "topic" and topic not in one.values:
            return False
        if isinstance(one, TopicMatches) and not one.holds(topic):
            return False
        if isinstance(one, InQueues) and not one.others and topic not in {t for t, _ in one.ranges}:
            return False
    return True


def offsets_in(selection: Selection, queue: Queue) -> Interval:
    """Return the queue offsets [start, end) of a queue that can be wanted; 0, 0 for none."""
    topic, queue_id = queue
    if not wants_topic(selection, topic):
        return 0, 0
    start, last = interval(selection, "queueOffset")
    low, high = interval(selection, "queueId")
    listed = numbers(selection, "queueId")
    if not low <= queue_id <= high or (listed is not None and queue_id not in listed):
        return 0, 0
    end = min(last, MOST - 1) + 1
    for one in selection:
        if isinstance(one, InQueues):
            first, behind = one.ranges.get(queue, (0, MOST if one.others else 0))
            start, end = max(start, first), min(end, behind)
    start = max(start, 0)
    return (start, end) if start < end else (0, 0)


def named_queues(selection: Selection) -> Sequence[Queue] | None:
    """Return the only queues that can be wanted by offset, None where they are not named."""
    found = [one for one in selection if isinstance(one, InQueues) and not one.others]
    return list(found[0].ranges) if found else None


def key_texts(selection: Selection) -> frozenset[str] | None:
    """Return keys of which each wanted message has one in the index; None without a condition."""
    unique = texts(selection, "uniqKey")
    if unique is not None:
        return unique
    return next((frozenset(one.keys) for one in selection if isinstance(one, HasKey)), None)
