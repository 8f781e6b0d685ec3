"""The conditions of a query on messages. All of them must hold.

They come from options and from Spark's filters. Planning uses those that limit the part of the log
to read, and `row_filter` checks each record. They are plain values, which are pickled for tasks.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from mqlake.store.log.scan import Queue

MOST = (1 << 63) - 1

NUMBERS = ("queueId", "queueOffset", "physicalOffset", "storeTimestamp")
"""Integer columns of conditions; times are milliseconds."""

TEXTS = ("topic", "tags", "msgId", "uniqKey")
"""Text columns of conditions."""

Interval = tuple[int, int]

V = TypeVar("V")


class Between(msgspec.Struct, frozen=True):
    """A number is in [low, high]."""

    column: str
    low: int = -MOST
    high: int = MOST


class AnyNumber(msgspec.Struct, frozen=True):
    """A number equals one of several."""

    column: str
    values: tuple[int, ...]


class AnyText(msgspec.Struct, frozen=True):
    """A text equals one of several; null never does."""

    column: str
    values: tuple[str, ...]


class TopicMatches(msgspec.Struct, frozen=True):
    """The whole topic matches a regular expression."""

    pattern: str

    def holds(self, topic: str) -> bool:
        """Return whether a topic matches."""
        return re.fullmatch(self.pattern, topic) is not None


class TopicShare(msgspec.Struct, frozen=True):
    """The topic is in one of `count` groups, among which all topics are distributed.

    Attributes:
        groups: the group of each known topic; the group of other topics is a hash.
        number: the requested group.
    """

    groups: dict[str, int]
    count: int
    number: int

    def holds(self, topic: str) -> bool:
        """Return whether a topic is in the group."""
        group = self.groups.get(topic)
        if group is None:
            group = zlib.crc32(topic.encode("utf-8", "surrogatepass")) % self.count
        return group == self.number


class HasKey(msgspec.Struct, frozen=True):
    """One of several texts is among the message's KEYS, or is its unique key."""

    keys: tuple[str, ...]


class InQueues(msgspec.Struct, frozen=True):
    """The message is in a queue, at a queue offset in that queue's [start, end).

    Half messages and ROLLBACK marks are in no queue, whatever offset they contain.
    """

    ranges: dict[Queue, Interval]
    others: bool
    """Whether queues that are not named are included, from their first offset on."""


class Living(msgspec.Struct, frozen=True):
    """The message does not belong to a topic that was deleted after the message was put.

    Attributes:
        befores: by topic, the physical offset before which its messages are dead.
        others: the same for other topics.
    """

    befores: dict[str, int]
    others: int = 0

    @property
    def end(self) -> int:
        """The physical offset from which on no message is dead."""
        return max(self.others, *self.befores.values(), 0)

    def before(self, topic: str) -> int:
        """Return the physical offset before which a topic's messages are dead."""
        return self.befores.get(topic, self.others)


Condition = Between | AnyNumber | AnyText | TopicMatches | TopicShare | HasKey | InQueues | Living
Selection = tuple[Condition, ...]


def interval(selection: Selection, column: str) -> Interval:
    """Return the least and the greatest number that a column can have.

    If no number is possible, low > high.
    """
    low, high = -MOST, MOST
    for one in selection:
        if isinstance(one, Between) and one.column == column:
            low, high = max(low, one.low), min(high, one.high)
        elif isinstance(one, AnyNumber) and one.column == column:
            low = max(low, min(one.values, default=MOST))
            high = min(high, max(one.values, default=-MOST))
    return low, high


def numbers(selection: Selection, column: str) -> frozenset[int] | None:
    """Return the numbers that a column can have, or None if they are not listed."""
    return _common(
        frozenset(one.values)
        for one in selection
        if isinstance(one, AnyNumber) and one.column == column
    )


def texts(selection: Selection, column: str) -> frozenset[str] | None:
    """Return the texts that a column can have, or None if they are not listed."""
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
    """Return whether messages of a topic can be selected."""
    for one in selection:
        if isinstance(one, AnyText) and one.column == "topic" and topic not in one.values:
            return False
        if isinstance(one, TopicMatches) and not one.holds(topic):
            return False
        if isinstance(one, InQueues) and not one.others and topic not in {t for t, _ in one.ranges}:
            return False
    return True


def offsets_in(selection: Selection, queue: Queue) -> Interval:
    """Return the queue offsets [start, end) of a queue that can be selected.

    (0, 0) if no offset of the queue can be.
    """
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
    """Return the only queues that can be selected, or None if all can."""
    found = [one for one in selection if isinstance(one, InQueues) and not one.others]
    return list(found[0].ranges) if found else None


def key_texts(selection: Selection) -> frozenset[str] | None:
    """Return keys of which each selected message has one in the index.

    None without such a condition.
    """
    unique = texts(selection, "uniqKey")
    if unique is not None:
        return unique
    return next((frozenset(one.keys) for one in selection if isinstance(one, HasKey)), None)
