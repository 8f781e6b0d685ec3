"""Check points on disk, and the redelivery of messages that nobody acknowledged.

Upstream: `PopBufferMergeService`, `PopReviveService`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from mqlake.broker.pop.check_points import CheckPoint, Key, ack_message, point_message
from mqlake.broker.pop.in_flight import InFlight, Pop
from mqlake.broker.pop.retried import Retried
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.pop_counts import ACK, CHECK_POINT
from mqlake.errors import MqlakeError
from mqlake.formats.file_name import is_safe_topic
from mqlake.formats.own_properties import FIRST_POP_TIME, POP_GROUP
from mqlake.formats.properties import DELAY
from mqlake.formats.property_edits import edit
from mqlake.formats.record import Record
from mqlake.protocol import naming
from mqlake.protocol.retry_topics import (
    QUEUES,
    normal_topic,
    retry_topic,
    retry_topic_fault,
)
from mqlake.remoting.slices import Job
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.stored import Stored, message_of, read_stored, returned_once_more

_AGAIN = 1000
"""Milliseconds after which messages that the store refused are tried again."""

_log = logging.getLogger(__name__)


class ReviveTopic:
    """Puts check points and acknowledgements to the revive topic, messages to retry topics.

    Attributes:
        topic: the revive topic.
        queues: the number of its queues, including those that only an earlier process used.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime, in_flight: InFlight) -> None:
        self._state, self._runtime, self._in_flight = state, runtime, in_flight
        self._store, self._retried = state.store, Retried(state, runtime)
        self._counts = state.pop_counts
        self.topic = naming.REVIVE_PREFIX + runtime.settings.broker_cluster_name
        self._turn = 0
        self._rests_until = 0
        # Receipts of an earlier process may name a queue that is not used any more.
        stored = max(state.store.reads.queues(self.topic), default=-1) + 1
        self.queues = max(1, runtime.settings.revive_queue_num, stored)

    def next_revive_queue(self) -> int:
        """Return the next queue of the revive topic in turn."""
        self._turn = (self._turn + 1) % max(1, self._runtime.settings.revive_queue_num)
        return self._turn

    def look_at(self, point: CheckPoint) -> int:
        """Return until when a pop stays in memory (ms)."""
        stay = self._runtime.settings.pop_ck_stay_buffer_time
        return min(point.revive_time, point.pop_time + stay)

    def look(self, now: int) -> Job[None]:
        """Settle what was in memory long enough; advance the groups' offsets."""
        if now >= self._rests_until:
            yield from self._settle_due(now)
        yield from self._in_flight.commit(self._store.watermarks.flushed)

    def _settle_due(self, now: int) -> Job[None]:
        failed: list[tuple[CheckPoint, MqlakeError]] = []
        for pop in self._in_flight.due(now):
            yield
            try:
                is_accepted = yield from self._settle(pop, now)
            except MqlakeError as error:
                # Perhaps only the files of this queue cannot be read: the others do not wait.
                failed.append((pop.point, error))
                continue
            if not is_accepted:
                # The store accepts nothing now, so the others wait, too.
                self._rests_until = now + _AGAIN
                break
        if failed:
            # One line for all of them: thousands may fail each second for the same reason.
            point, error = failed[0]
            _log.warning(
                "%s, queue %d: group %.255s's popped messages from offset %d on, and those of %d "
                "other pops, were not settled: %s; they are tried again after %d ms",
                point.topic,
                point.queue_id,
                point.group,
                point.start_offset,
                len(failed) - 1,
                error,
                _AGAIN,
            )

    def _settle(self, pop: Pop, now: int) -> Job[bool]:
        """Settle a pop, or look at it again later; return False if the store accepts nothing."""
        if pop.settled_at is not None:
            return True
        try:
            if pop.point.revive_time > now:
                if pop.is_sent:
                    return self.keep(pop)
                self._in_flight.look_again(pop, now + _AGAIN)
                return True
            return (yield from self._revive(pop, now))
        except Exception:
            # `InFlight.due` has forgotten when to look at it: its messages would never be
            # redelivered, and the group's offset would not advance.
            self._in_flight.look_again(pop, now + _AGAIN)
            raise

    def give_back(self, pop: Pop) -> None:
        """Redeliver the messages of a pop that were sent to nobody, at the next look.

        RocketMQ hides them until the invisible time is over.
        """
        if pop.settled_at is None:
            pop.point.expire()
            self._in_flight.look_again(pop, self._store.clock.milliseconds())

    def keep(self, pop: Pop) -> bool:
        """Put the check point of a pop to the revive topic, so that it is no longer needed in
        memory.

        A check point that can never be put stays in memory until its messages are redelivered.

        Returns:
            False if the store accepts nothing now; it is tried again later.
        """
        put = self._put_check_point(pop.point, pop.revive_queue_id)
        if put.count:
            self._in_flight.settle(pop, put.physical_offset + put.size)
            return True
        again = self._store.clock.milliseconds() + _AGAIN
        is_poison = put.is_permanent
        self._in_flight.look_again(pop, max(again, pop.point.revive_time) if is_poison else again)
        return is_poison

    def _revive(self, pop: Pop, now: int) -> Job[bool]:
        if not (yield from self.revive(pop.point, lambda: pop.settled_at is not None)):
            self._in_flight.look_again(pop, now + _AGAIN)
            return False
        if pop.settled_at is None:
            self._in_flight.settle(pop, self._store.watermarks.end)
        return True

    def put_point(self, point: CheckPoint, revive_queue_id: int) -> int | None:
        """Put a check point; return the physical offset after it, None if it was refused."""
        put = self._put_check_point(point, revive_queue_id)
        return put.physical_offset + put.size if put.count else None

    def put_ack(self, key: Key, offsets: list[int], due: int, revive_queue_id: int) -> None:
        """Put an acknowledgement of messages that are invisible until `due` (ms).

        A refused acknowledgement is lost: the messages are redelivered.
        """
        name = self._runtime.settings.broker_name
        message = ack_message(key, offsets, name, due, self.topic, revive_queue_id)
        put = self._put(message)
        self._counts.put.add((key.group, key.topic, ACK, put.status.name))
        if not put.count:
            _log.warning(
                "%s, queue %d: group %.255s's acknowledgement of %d messages from offset %d "
                "on was not stored; they are redelivered",
                key.topic,
                key.queue_id,
                key.group,
                len(offsets),
                offsets[0],
            )

    def _put_check_point(self, point: CheckPoint, revive_queue_id: int) -> PutResult:
        put = self._put(point_message(point, self.topic, revive_queue_id))
        self._counts.put.add((point.group, point.topic, CHECK_POINT, put.status.name))
        return put

    def _put(self, message: Message) -> PutResult:
        (result,) = self._state.store.appends.many([message])
        if not result.count:
            _log.warning("%s: %s: %s", message.topic, result.status, result.reason)
        return result

    # Revive

    def revive(self, point: CheckPoint, is_over: Callable[[], bool] = lambda: False) -> Job[bool]:
        """Put the unacknowledged messages to the group's retry topic, one after another.

        Nothing is left to do if the topic or the group was deleted, or a message was removed.

        Args:
            is_over: returns whether nothing is left to do, because the pop was forgotten meanwhile.

        Returns:
            Whether everything is done; finished parts are not repeated.
        """
        while (waiting := point.missing) and not is_over() and self._is_alive(point):
            if not self._put_to_retry_topic(point, waiting[0]):
                return False
            point.acknowledge(waiting[0])
            yield
        return True

    def _is_alive(self, point: CheckPoint) -> bool:
        """Return whether the topic and the group of a check point exist.

        A group that was deleted, but whose offsets remain, continues if it is created again.
        """
        topic, group = normal_topic(point.topic, point.group), point.group
        is_safe = is_safe_topic(point.topic.encode("utf-8", "replace"))
        if topic not in self._state.topics or not is_safe:
            return False
        if 0 < point.log_end < self._store.incarnations.group_before(group):
            return False
        offsets = self._store.config.consumer_offsets
        return group in self._state.groups or offsets.has(group, point.topic, point.queue_id)

    def _is_another(self, point: CheckPoint, record: Record) -> bool:
        """Return whether a message is not the one that was popped, although it is at its place.

        The topic was deleted and created again since, or an older log was restored.
        """
        if point.log_end:
            return point.log_end <= record.physical_offset
        # RocketMQ's check points say only when the message was popped.
        was_deleted = self._store.incarnations.before(point.topic) > 0
        return was_deleted and record.store_timestamp > point.pop_time

    def _put_to_retry_topic(self, point: CheckPoint, queue_offset: int) -> bool:
        """Put a message again, or set it aside; return whether it is finished."""
        low, high = self._store.reads.queue(point.topic, point.queue_id)
        if not low <= queue_offset < high:
            return True
        stored = self._stored(point, queue_offset)
        if stored is None:
            self._store.redelivery.note_missing(point.topic, point.queue_id, queue_offset)
            return True
        topic = normal_topic(point.topic, point.group)
        if self._is_another(point, stored.record) or self._retried.is_dead(
            stored.record, topic, point.group
        ):
            return True
        if self._state.topics.is_being_deleted(self._retry_topic(point)):
            return False  # The message would be deleted with the retry topic.
        message = self._again(point, stored)
        result = self._state.store.appends.again(message)
        self._counts.retried.add((point.group, point.topic, result.status.name))
        if result.count:
            return True
        if not result.is_permanent:
            _log.warning("%s: %s: %s", message.topic, result.status, result.reason)
            return False
        why = f"group {point.group} did not acknowledge it; {message.topic}: {result.reason}"
        return self._store.redelivery.put_aside(stored, why)

    def _stored(self, point: CheckPoint, queue_offset: int) -> Stored | None:
        found = self._store.reads.get(point.topic, point.queue_id, queue_offset, 1).raw
        stored = read_stored(found[0]) if found else None
        is_there = stored is not None and stored.record.queue_offset == queue_offset
        return stored if is_there else None

    def _again(self, point: CheckPoint, stored: Stored) -> Message:
        record = stored.record
        # A delay is not applied again (in upstream it is).
        is_first = FIRST_POP_TIME not in record.properties
        added = {FIRST_POP_TIME: str(point.pop_time)} if is_first else {}
        if naming.group_fault(point.group) is None:
            added[POP_GROUP] = point.group
        data = edit(stored.properties, (DELAY, POP_GROUP), added)
        topic, queue_id = self._retry_queue(point, record.queue_id)
        message = message_of(record, topic, queue_id, data, record.sys_flag)
        times = record.reconsume_times if point.is_suspended else returned_once_more(record)
        return msgspec.structs.replace(message, reconsume_times=times)

    def _retry_queue(self, point: CheckPoint, queue_id: int) -> tuple[str, int]:
        """Return the retry topic and the queue for a message of a queue."""
        name = self._retry_topic(point)
        if not self._runtime.settings.use_separate_retry_queue:
            self._provide(point, name, QUEUES, 0)
            return name, 0
        topic = self._state.topics.get(normal_topic(point.topic, point.group))
        queues = max(QUEUES, topic.write_queue_nums if topic else 0)
        queue_id = queue_id if queue_id < queues else 0
        self._provide(point, name, queues, queue_id)
        return name, queue_id

    def _retry_topic(self, point: CheckPoint) -> str:
        if point.topic.startswith(naming.RETRY_PREFIX):
            return point.topic
        is_v2 = self._runtime.settings.enable_retry_topic_v2
        return retry_topic(point.topic, point.group, is_v2=is_v2)

    def _provide(self, point: CheckPoint, name: str, queues: int, queue_id: int) -> None:
        """Create a missing retry topic, or add queues to it, if possible."""
        is_v2_written = self._runtime.settings.auto_message_version_on_topic_len
        if retry_topic_fault(name, is_v2_written=is_v2_written) is not None:
            return
        topic = self._state.topics.make(name, queues)
        self._state.topics.add_queues(topic, queues)
        offsets = self._store.config.consumer_offsets
        room = self._state.offset_room
        if offsets.query(point.group, name, queue_id) is None and room.has_room(point.group):
            offsets.commit(point.group, name, queue_id, 0)
