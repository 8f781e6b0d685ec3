"""Put accepted messages again, and set aside those that can never be put.

Every service that delivers previously accepted messages puts them through `Redelivery`, so that no
message blocks later ones, and none is dropped without a trace.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import msgspec

from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.own_properties import (
    CHECK_TIMES,
    FIRST_HALF_OFFSET,
    LONGEST_PUT,
    OPTIONAL,
    TIMER_OUT_MS,
)
from mqlake.formats.properties import DELAY, INNER_NUM, REAL_QID, REAL_TOPIC
from mqlake.formats.property_edits import edit
from mqlake.formats.record import Record
from mqlake.formats.sys_flag import INNER_BATCH, TRANSACTION_MASK
from mqlake.formats.topic_names import HALF_TOPIC, TIMER_TOPIC, UNDELIVERABLE_TOPIC, WAITING
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.config_store import ConfigStore
from mqlake.store.delivery.put_again import Put, readable_queue
from mqlake.store.services import Service
from mqlake.store.stored import Stored, message_of

_WHERE = frozenset((REAL_TOPIC, REAL_QID))
_NEEDED = {
    SCHEDULE_TOPIC: _WHERE | {DELAY},
    TIMER_TOPIC: _WHERE | {TIMER_OUT_MS},
    HALF_TOPIC: _WHERE | {CHECK_TIMES, FIRST_HALF_OFFSET},
}
"""Properties without which the messages of a topic cannot be delivered."""

_LONGEST_NAME = 255
_REPORT_INTERVAL = 1000

_log = logging.getLogger(__name__)


class Redelivery:
    """Puts messages that were accepted before. For the store's thread.

    A message that has become too long loses optional properties (`OPTIONAL`), which can happen only
    if RocketMQ or an older mqlake accepted it without keeping room for them.

    Attributes:
        set_aside: how many messages could not be put to their topic, since the start.
        moved: how many messages were put to another queue than the one that they were sent to,
            because their topic no longer has that queue, since the start.
        dead: how many messages were dropped because their topic was deleted while they waited,
            since the start.

    Args:
        append: appends a message as it is, whatever delay its properties ask for, and whatever
            `maxMessageSize` is now.
        append_without_crc: does the same for a message that leaves no room for the record CRC.
    """

    def __init__(self, append: Put, append_without_crc: Put, config: ConfigStore) -> None:
        self._append, self._append_without_crc = append, append_without_crc
        self._topics, self._incarnations = config.topics, config.incarnations
        self.set_aside = self.moved = self.dead = 0
        self._moves = Counter[tuple[str, int, int]]()
        self._dead = Counter[str]()

    def services(self) -> list[Service]:
        """Return a service that reports what happened to many messages in one line."""

        def start() -> None:
            self.report()

        return [Service(_REPORT_INTERVAL, start, "redelivery")]

    def report(self) -> None:
        """Log what happened to messages since the last report."""
        for (topic, queue_id, other), count in self._moves.items():
            _log.warning(
                "topic %s no longer has queue %d; messages that waited for it and were put to "
                "queue %d: %d",
                topic,
                queue_id,
                other,
                count,
            )
        for topic, count in self._dead.items():
            _log.warning(
                "topic %s was deleted after messages were sent that waited for it; dropped, but "
                "still in the log: %d",
                topic,
                count,
            )
        self._moves.clear()
        self._dead.clear()

    def put(self, message: Message) -> PutResult:
        """Append a message to its queue, or to another one if its topic has lost that queue.

        It loses optional properties if it is too long with them.
        """
        placed = self._placed(message)
        result = self._put(placed)
        if result.count and placed is not message:
            self.moved += 1
            self._moves[message.topic, message.queue_id, placed.queue_id] += 1
        return result

    def _placed(self, message: Message) -> Message:
        """Return a message in a queue that its consumers read."""
        if message.topic in WAITING:
            return message
        queue_id = readable_queue(self._topics.get(message.topic), message.queue_id)
        if queue_id == message.queue_id:
            return message
        return msgspec.structs.replace(message, queue_id=queue_id)

    def _put(self, message: Message) -> PutResult:
        result = self._append(message)
        if not result.is_permanent:
            return result
        shortest = message
        for shortest in _shorter(message):
            again = self._append(shortest)
            if not again.is_permanent:
                return again
        # RocketMQ, or an older mqlake, filled the whole record with the user's properties.
        bare = self._append_without_crc(shortest)
        return result if bare.is_permanent else bare

    def drops(self, topic: str, source: Record) -> bool:
        """Return whether a waiting message is dropped, and count it: its topic was deleted.

        If a topic of this name was created again, it is another topic. Upstream delivers the
        message.

        Args:
            topic: the topic that the message waits for.
            source: the record that waits.
        """
        if not self.was_deleted(topic, source):
            return False
        self.dead += 1
        self._dead[topic] += 1
        return True

    def was_deleted(self, topic: str, source: Record) -> bool:
        """Return whether a topic was deleted after a record was put, or created again since."""
        return self._incarnations.was_deleted(topic, source.physical_offset)

    def settle(self, message: Message | None, source: Stored, why: str = "") -> bool:
        """Put a message; if it can never be put, set its source aside.

        Args:
            message: None if no message can be made from the source.
            why: the reason in that case.

        Returns:
            Return whether the source is finished; if not, the store accepts no messages now.
        """
        if message is not None:
            result = self.put(message)
            if not result.is_permanent:
                return bool(result.count)
            why = f"{message.topic[:_LONGEST_NAME]}: {result.reason}"
        return self.put_aside(source, why)

    def put_aside(self, source: Stored, why: str) -> bool:
        """Put a message to the topic of undeliverable ones; return whether that is finished."""
        record = source.record
        self._topics.ensure(UNDELIVERABLE_TOPIC, 1)
        flags = record.sys_flag & ~(TRANSACTION_MASK | INNER_BATCH)
        kept = edit(source.properties, drop=(INNER_NUM,))
        result = self.put(message_of(record, UNDELIVERABLE_TOPIC, 0, kept, flags))
        if not result.count and not result.is_permanent:
            return False
        self.set_aside += 1
        _log.error(
            "a message cannot be delivered and is set aside: offset %d of the log, topic %s,"
            " queue %d, queue offset %d: %s; %s",
            record.physical_offset,
            record.topic,
            record.queue_id,
            record.queue_offset,
            why,
            f"it is kept in {UNDELIVERABLE_TOPIC}" if result.count else "read it at that offset",
        )
        return True

    def note_missing(self, topic: str, queue_id: int, queue_offset: int) -> None:
        """Report a message for which the log no longer has a good record."""
        self.set_aside += 1
        _log.error(
            "a message cannot be delivered: topic %s, queue %d, queue offset %d has no good "
            "record in the log; check the store with `mqlake verify`",
            topic,
            queue_id,
            queue_offset,
        )


def _shorter(message: Message) -> Iterator[Message]:
    """Yield a message that just fits, then one without any optional properties."""
    data = message.encoded_properties or b""
    needed = _NEEDED.get(message.topic, frozenset[str]())
    names = [name for name in OPTIONAL if name not in needed]
    shorter = (edit(data, names[:count]) for count in range(1, len(names) + 1))
    fitting = next((each for each in shorter if len(each) <= LONGEST_PUT), data)
    for each in (fitting, edit(data, names)):
        if len(each) < len(data):
            yield msgspec.structs.replace(message, encoded_properties=each)
