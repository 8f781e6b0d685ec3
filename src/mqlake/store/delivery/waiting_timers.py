"""The timer messages that wait: until when, for which topics, and what ends their waiting early.

It is in memory, and follows from the queue of timer messages. Upstream: `TimerMessageStore`,
`TimerMetrics`.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque

from mqlake.formats.properties import CANCEL, REAL_TOPIC, UNIQ_KEY
from mqlake.formats.record import Record
from mqlake.formats.timer_log import MAGIC_DELETE, MAGIC_ROLL
from mqlake.store.delivery.timer_messages import MessageIdentity, identity, roll_times
from mqlake.store.delivery.timer_wheel import TimerWheel


class WaitingTimers:
    """The waiting messages of one store.

    A message is due after its slot. One that waits long is examined before that, and put again, so
    that retention does not remove it; the new message replaces it.

    Args:
        precision: the length of a slot, in milliseconds.

    Attributes:
        wheel: the messages by the slot in which they are examined.
    """

    def __init__(self, precision: int) -> None:
        self.wheel = TimerWheel(precision)
        self._by_topic = Counter[str]()
        # Messages that must be put again: when they are examined, and their queue offsets.
        self._replaced: dict[MessageIdentity, deque[tuple[int, int]]] = {}
        # The keys of the messages to cancel, by slot, and the queue offsets of the requests.
        self._cancelled: defaultdict[int, dict[str, int]] = defaultdict(dict)

    @property
    def by_topic(self) -> dict[str, int]:
        """How many messages wait for each topic."""
        return dict(self._by_topic)

    def add(self, queue_offset: int, record: Record, slot: int | None, time: int) -> None:
        """Let a message wait.

        Args:
            slot: the slot (ms) after which it is due; None if it does not contain it.
            time: when it is to be examined (ms); before `slot` if it must be put again.
        """
        if slot is not None:
            if (key := record.properties.get(CANCEL)) is not None:
                self._cancelled[self.wheel.slot_of(slot)][key] = queue_offset
            if time != slot:
                known = self._replaced.setdefault(_identity(record, slot), deque())
                known.append((time, queue_offset))
        self.wheel.add(time, queue_offset)
        self._by_topic[topic_of(record)] += 1

    def pop(self) -> None:
        """Remove the first message of the wheel."""
        first = self.wheel.first()
        if first is not None and self.wheel.pop():
            self._cancelled.pop(first.slot, None)
        self._note_removed()

    def note_end(self, record: Record) -> None:
        """Stop counting a message among those that wait for its topic."""
        topic = topic_of(record)
        self._by_topic[topic] -= 1
        if self._by_topic[topic] <= 0:
            del self._by_topic[topic]

    def note_put_again(self, record: Record, slot: int) -> None:
        """Note that the message was put again that has waited longest among its equals."""
        self._take_replaced(_identity(record, slot))

    def discard_original(self, record: Record, slot: int) -> None:
        """Remove the message that this one replaces, if both are found at a start."""
        found = self._take_replaced(identity(record, slot, roll_times(record.properties) - 1))
        if found is not None:
            self.wheel.discard(*found)
            self.note_end(record)
            self._note_removed()

    def is_cancelled(self, record: Record, slot: int) -> bool:
        """Return whether a message that is due after a slot (ms) was cancelled."""
        keys = self._cancelled.get(self.wheel.slot_of(slot))
        if not keys or CANCEL in record.properties:
            return False
        key = record.properties.get(UNIQ_KEY, "")
        return key in keys or f"{record.properties.get(REAL_TOPIC)}+{key}" in keys

    def flags(self) -> dict[int, int]:
        """Return the flags of RocketMQ's timer log for messages that will be put again, or that
        cancel another, by queue offset.
        """
        found = {offset: MAGIC_ROLL for known in self._replaced.values() for _, offset in known}
        for keys in self._cancelled.values():
            for offset in keys.values():
                found[offset] = found.get(offset, 0) | MAGIC_DELETE
        return found

    def _take_replaced(self, key: MessageIdentity) -> tuple[int, int] | None:
        known = self._replaced.get(key)
        if not known:
            return None
        found = known.popleft()
        if not known:
            del self._replaced[key]
        return found

    def _note_removed(self) -> None:
        if not self.wheel.count:
            self._by_topic.clear()  # Those whose record is gone are still counted there.


def topic_of(record: Record) -> str:
    """Return the topic for which a message waits."""
    return record.properties.get(REAL_TOPIC, "")


def _identity(record: Record, slot: int) -> MessageIdentity:
    return identity(record, slot, roll_times(record.properties))
