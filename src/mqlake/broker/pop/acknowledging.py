"""ACK_MESSAGE, BATCH_ACK_MESSAGE, CHANGE_MESSAGE_INVISIBLETIME.

Upstream: `AckMessageProcessor`, `ChangeInvisibleTimeProcessor`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any

from mqlake.broker.bodies import admin_body
from mqlake.broker.lite.settling import LiteSettling
from mqlake.broker.pop.check_points import MOST_MESSAGES, CheckPoint, Key
from mqlake.broker.pop.in_flight import InFlight, QueueKey
from mqlake.broker.pop.ordered import Ordered
from mqlake.broker.pop.revive_topic import ReviveTopic
from mqlake.broker.pop.waiting import WaitingPops
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.bodies.pop import BatchAck, BatchAcks
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.receipts import Receipt, check_receipt, parse_receipt
from mqlake.protocol.headers.pop import (
    AckHeader,
    ChangeInvisibleTimeAnswerHeader,
    ChangeInvisibleTimeHeader,
)
from mqlake.protocol.retry_topics import marked
from mqlake.remoting.connection import Peer
from mqlake.remoting.slices import Job, run_at_once

_MOST_BITS = 1 << 16
"""Bits of an entry that are examined: a pop with a filter skips messages."""
_NO_MESSAGE = ResponseCode.NO_MESSAGE
_ILLEGAL = ResponseCode.MESSAGE_ILLEGAL


class Acknowledging:
    """Serves acknowledgements of popped messages."""

    def __init__(
        self,
        state: BrokerState,
        runtime: BrokerRuntime,
        in_flight: InFlight,
        revive_topic: ReviveTopic,
        ordered: Ordered,
        waiting: WaitingPops,
    ) -> None:
        self._state, self._runtime, self._store = state, runtime, state.store
        self._in_flight, self._revive_topic = in_flight, revive_topic
        self._ordered, self._waiting = ordered, waiting
        self._lite = LiteSettling(state, runtime)

    # ACK_MESSAGE, BATCH_ACK_MESSAGE

    def acknowledge(self, peer: Peer, request: Command) -> Command:
        """Note that a message was consumed."""
        header = request.header(AckHeader)
        receipt = self._receipt(header.extra_info)
        if header.lite_topic:
            return self._lite.acknowledge(request, header, receipt)
        key = self._queue(header, peer)
        low, high = self._store.reads.queue(header.topic, header.queue_id)
        if not low <= header.offset <= high:
            reason = (
                f"offset is illegal, key:{header.topic}@{header.queue_id}, commit:{header.offset},"
                f" store:{low}~{high}"
            )
            raise RemotingError(_NO_MESSAGE, reason)
        if receipt.is_ordered:
            self._acknowledge_ordered(key, header.offset, receipt, peer)
        else:
            self._acknowledge(key, receipt, [header.offset])
        return response(request)

    def acknowledge_batch(
        self, peer: Peer, request: Command
    ) -> Command | Coroutine[Any, Any, Command]:
        """Note that messages of several pops were consumed."""
        settings = self._runtime.settings
        acks = admin_body(BatchAcks, request, settings).acks if request.body else []
        if not acks:
            raise RemotingError(_NO_MESSAGE, "no acknowledgements")
        job = self._acknowledge_all(peer, request, acks)
        return self._runtime.slices.serve(peer, job, size=len(request.body), is_kept=True)

    def _acknowledge_all(self, peer: Peer, request: Command, acks: list[BatchAck]) -> Job[Command]:
        for ack in acks:
            self._acknowledge_one(peer, ack)
            yield
        return response(request)

    def _acknowledge_one(self, peer: Peer, ack: BatchAck) -> None:
        receipt = Receipt(
            ack.start_offset, ack.pop_time, ack.invisible_time, ack.revive_queue_id, ack.retry
        )
        check_receipt(receipt, self._revive_topic.queues)
        topic = marked(ack.retry, ack.topic, ack.consumer_group)
        if topic not in self._state.topics:
            return
        low, high = self._store.reads.queue(topic, ack.queue_id)
        offsets = [ack.start_offset + number for number in _first_bits(ack.bits)]
        offsets = [offset for offset in offsets if low <= offset <= high]
        key = QueueKey(topic, ack.consumer_group, ack.queue_id)
        if receipt.is_ordered:
            for offset in offsets:
                self._acknowledge_ordered(key, offset, receipt, peer)
        elif offsets:
            self._acknowledge(key, receipt, offsets)

    def _acknowledge(self, key: QueueKey, receipt: Receipt, offsets: list[int]) -> None:
        """Acknowledge in memory, otherwise in the revive topic after the check point."""
        point_key = Key(*key, receipt.start_offset, receipt.pop_time)
        pop = self._in_flight.find(point_key)
        if pop is None:
            due = receipt.pop_time + receipt.invisible_time
            self._revive_topic.put_ack(point_key, offsets, due, receipt.revive_queue_id)
            return
        for offset in offsets:
            pop.point.acknowledge(offset)
        if not pop.point.missing:
            self._in_flight.settle(pop, pop.needs)

    def _acknowledge_ordered(
        self, key: QueueKey, offset: int, receipt: Receipt, peer: Peer
    ) -> None:
        offsets = self._store.config.consumer_offsets
        topic, group, queue_id = key
        old = offsets.query(group, topic, queue_id)
        if old is not None and offset < old:
            return
        if old is None:
            self._state.offset_room.check(group, topic)
        following = self._ordered.acknowledge(key, offset, receipt.pop_time)
        if following is None:
            return
        if following < 0:
            reason = (
                f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{old}, commit:{offset},"
                f" next:{following}, {peer.address}"
            )
            raise RemotingError(_ILLEGAL, reason)
        if not offsets.has_reset(group, topic, queue_id):
            offsets.commit(group, topic, queue_id, following)
        if not self._ordered.is_blocked(key):
            self._waiting.wake(topic, group, queue_id)

    # CHANGE_MESSAGE_INVISIBLETIME

    def change_time(self, peer: Peer, request: Command) -> Command:
        """Change when a message is redelivered; answer the parts of the new receipt."""
        header = request.header(ChangeInvisibleTimeHeader)
        receipt = self._receipt(header.extra_info)
        if header.lite_topic:
            return self._lite.change_time(request, header, receipt)
        key = self._queue(header, peer)
        low, high = self._store.reads.queue(header.topic, header.queue_id)
        if not low <= header.offset < high:
            raise RemotingError(
                _NO_MESSAGE, f"there is no message {header.offset}; the queue has {low}~{high}"
            )
        now = self._store.clock.milliseconds()
        longest = self._runtime.settings.timer_max_delay_sec * 1000
        if not 0 <= header.invisible_time <= longest:
            reason = f"invisibleTime {header.invisible_time} is not between 0 and {longest} ms"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"{reason} (timerMaxDelaySec)")
        if receipt.is_ordered:
            return self._change_ordered(request, header, key, receipt, now)
        self._check_incarnation(key, header.offset, receipt)
        point = CheckPoint(
            start_offset=header.offset,
            pop_time=now,
            invisible_time=header.invisible_time,
            count=1,
            queue_id=key.queue_id,
            topic=key.topic,
            group=key.group,
            distances=[0],
            broker_name=self._runtime.settings.broker_name,
            is_suspended=bool(header.suspend),
            log_end=self._store.watermarks.end,
        )
        end = self._revive_later(point, receipt.revive_queue_id)
        pop = self._in_flight.find(Key(*key, receipt.start_offset, receipt.pop_time))
        if pop is not None:
            pop.needs = end
        self._acknowledge(key, receipt, [header.offset])
        fields = ChangeInvisibleTimeAnswerHeader(
            pop_time=now,
            invisible_time=header.invisible_time,
            revive_qid=receipt.revive_queue_id,
        )
        return response(request, header=fields)

    def _revive_later(self, point: CheckPoint, revive_queue_id: int) -> int:
        """Let a message be redelivered when its new time is over, at once if it has none.

        Upstream stores a check point in any case, whose message is redelivered seconds later.

        Returns:
            The physical offset before which everything that this needs was put.
        """
        if not point.invisible_time and run_at_once(self._revive_topic.revive(point)):
            return self._store.watermarks.end
        end = self._revive_topic.put_point(point, revive_queue_id)
        if end is None:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "the new check point was refused")
        return end

    def _change_ordered(
        self,
        request: Command,
        header: ChangeInvisibleTimeHeader,
        key: QueueKey,
        receipt: Receipt,
        now: int,
    ) -> Command:
        old = self._store.config.consumer_offsets.query(key.group, key.topic, key.queue_id)
        visible = now + header.invisible_time
        if old is None or header.offset >= old:
            self._ordered.change_time(
                key,
                header.offset,
                receipt.pop_time,
                visible,
                is_suspended=bool(header.suspend),
            )
            if visible <= now:
                self._waiting.wake(key.topic, key.group, key.queue_id)
        fields = ChangeInvisibleTimeAnswerHeader(
            pop_time=receipt.pop_time,
            invisible_time=visible - receipt.pop_time,
            revive_qid=receipt.revive_queue_id,
        )
        return response(request, header=fields)

    # Checks

    def _receipt(self, text: str) -> Receipt:
        return parse_receipt(text, self._revive_topic.queues)

    def _queue(self, header: AckHeader | ChangeInvisibleTimeHeader, peer: Peer) -> QueueKey:
        topic = self._state.topics.get(header.topic)
        if topic is None:
            reason = f"topic[{header.topic}] not exist, apply first please!"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        if not 0 <= header.queue_id < topic.read_queue_nums and not self._exists(header):
            reason = (
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
                f" topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[{peer.address}]"
            )
            raise RemotingError(_ILLEGAL, reason)
        return QueueKey(header.topic, header.consumer_group, header.queue_id)

    def _exists(self, header: AckHeader | ChangeInvisibleTimeHeader) -> bool:
        """Return whether a queue that the topic has lost has messages: they may be popped."""
        return header.queue_id in self._store.reads.queues(header.topic)

    def _check_incarnation(self, key: QueueKey, offset: int, receipt: Receipt) -> None:
        """Refuse a receipt of an earlier topic of that name: another message has its place.

        Raises:
            RemotingError: NO_MESSAGE.
        """
        is_known = self._in_flight.find(Key(*key, receipt.start_offset, receipt.pop_time))
        if is_known is not None or not self._store.incarnations.before(key.topic):
            return
        head = self._store.reads.head_from(key.topic, key.queue_id, offset)
        if head is not None and head.store_timestamp > receipt.pop_time:
            reason = (
                f"message {offset} of {key.topic}, queue {key.queue_id}, was stored after the pop "
                "of this receipt: the topic was deleted and created again"
            )
            raise RemotingError(_NO_MESSAGE, reason)


def _first_bits(data: bytes) -> Iterator[int]:
    """Yield which bits are set, among the lowest ones, as many as the maximum of messages in a pop.

    Upstream examines all; bits of no message of the pop change nothing there either.
    """
    bits = int.from_bytes(data[: _MOST_BITS // 8], "little")
    for _ in range(MOST_MESSAGES):
        if not bits:
            return
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
