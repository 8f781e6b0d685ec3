"""Check points on the disk, and what becomes of messages that nobody acknowledged.

Upstream: `PopBufferMergeService`, `PopReviveService`.
"""

from __future__ import annotations

import logging

import msgspec

from mqlake.broker import naming
from mqlake.broker.parts import Parts
from mqlake.broker.pop.check_points import CheckPoint, Key, ack_message, point_message
from mqlake.broker.pop.in_flight import InFlight, Pop
from mqlake.broker.pop.retry_topics import QUEUES, normal_topic, retry_topic
from mqlake.errors import FormatError
from mqlake.formats.properties import DELAY, encode_pairs
from mqlake.formats.record import Record
from mqlake.store.append.message import Message
from mqlake.store.delivery.put_again import message_of

FIRST_POP_TIME = "1ST_POP_TIME"

_AGAIN = 1000
"""Milliseconds after which what the store did not take is tried again."""

_log = logging.getLogger(__name__)


class Keeper:
    """Puts check points and acknowledgements to the revive topic, messages to retry topics.

    Attributes:
        topic: the revive topic.
    """

    def __init__(self, parts: Parts, in_flight: InFlight) -> None:
        self._parts, self._in_flight = parts, in_flight
        self._core = parts.store.core
        self.topic = naming.REVIVE_PREFIX + parts.settings.broker_cluster_name
        self._turn = 0

    def next_revive_queue(self) -> int:
        """Return a queue of the revive topic, each in its turn."""
        self._turn = (self._turn + 1) % max(1, self._parts.settings.revive_queue_num)
        return self._turn

    def look_at(self, point: CheckPoint) -> int:
        """Return until when a pop stays in memory (ms)."""
        stay = self._parts.settings.pop_ck_stay_buffer_time
        return min(point.revive_time, point.pop_time + stay)

    def look(self, now: int) -> None:
        """Settle what was in memory for long enough; move the groups' offsets on."""
        for pop in list(self._in_flight.due(now)):
            if pop.point.revive_time > now:
                self.keep(pop)
            elif self.revive(pop.point):
                self._in_flight.settle(pop, self._core.log.end)
            else:
                self._in_flight.look_again(pop, now + _AGAIN)
        self._in_flight.commit(self._core.log.flushed)

    def keep(self, pop: Pop) -> None:
        """Put the check point of a pop to the revive topic: memory needs it no more."""
        end = self.put_point(pop.point, pop.revive_queue_id)
        if end is None:
            self._in_flight.look_again(pop, self._core.clock.milliseconds() + _AGAIN)
        else:
            self._in_flight.settle(pop, end)

    def put_point(self, point: CheckPoint, revive_queue_id: int) -> int | None:
        """Put a check point; return the physical offset behind it, None where it was refused."""
        return self._put(point_message(point, self.topic, revive_queue_id))

    def put_ack(self, key: Key, offsets: list[int], due: int, revive_queue_id: int) -> None:
        """Put an acknowledgement of messages that are out until `due` (ms).

        One that is refused is lost: the messages come again.
        """
        name = self._parts.settings.broker_name
        message = ack_message(key, offsets, name, due, self.topic, revive_queue_id)
        if self._put(message) is None:
            _log.warning("an acknowledgement was not kept: %s, offsets %s", key, offsets)

    def _put(self, message: Message) -> int | None:
        (result,) = self._parts.store.append_many([message])
        if not result.count:
            _log.warning("%s: %s: %s", message.topic, result.status, result.reason)
            return None
        return result.physical_offset + result.size

    # Revive

    def revive(self, point: CheckPoint) -> bool:
        """Put the messages that are not acknowledged to the group's retry topic.

        Nothing is left to do where the topic or the group is gone, or a message was removed.

        Returns:
            Whether all is done; what is is not done again.
        """
        topic, group = normal_topic(point.topic, point.group), point.group
        if topic not in self._parts.topics or group not in self._parts.groups:
            return True
        for queue_offset in point.missing:
            record = self._record(point, queue_offset)
            if record is not None and self._put(self._again(point, record)) is None:
                return False
            point.acknowledge(queue_offset)
        return True

    def _record(self, point: CheckPoint, queue_offset: int) -> Record | None:
        try:
            found = self._core.reads.get(point.topic, point.queue_id, queue_offset, 1).records
        except FormatError:
            return None
        return found[0] if found and found[0].queue_offset == queue_offset else None

    def _again(self, point: CheckPoint, record: Record) -> Message:
        # A delay is not waited for again (upstream does).
        pairs = {name: value for name, value in record.properties.items() if name != DELAY}
        pairs.setdefault(FIRST_POP_TIME, str(point.pop_time))
        topic = self._retry_topic(point)
        message = message_of(record, topic, 0, encode_pairs(pairs), record.sys_flag)
        return msgspec.structs.replace(message, reconsume_times=record.reconsume_times + 1)

    def _retry_topic(self, point: CheckPoint) -> str:
        if point.topic.startswith(naming.RETRY_PREFIX):
            return point.topic
        is_v2 = self._parts.settings.enable_retry_topic_v2
        name = retry_topic(point.topic, point.group, is_v2=is_v2)
        if name not in self._parts.topics:
            self._parts.topics.make(name, QUEUES)
            offsets = self._core.config.consumer_offsets
            if offsets.query(point.group, name, 0) is None:
                offsets.commit(point.group, name, 0, 0)
        return name
