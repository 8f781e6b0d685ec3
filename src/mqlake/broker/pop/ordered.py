"""Pops in order: nothing after an unacknowledged message (upstream: `ConsumerOrderInfoManager`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from mqlake.broker.pop.in_flight import QueueKey, forget_some
from mqlake.broker.pop.kept_table import KeptTable, Members
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import StoreError
from mqlake.formats.config import ConsumerOrderInfos
from mqlake.formats.config.consumer_order_info import OrderInfo
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.receipts import PopInfo
from mqlake.remoting.slices import Job

_FORGET_AFTER = 24 * 60 * 60 * 1000
_SEPARATOR = "@"
_LONGEST_ATTEMPT_ID = 255
"""Maximum characters of an attempt id; those of clients are UUIDs."""


@dataclass(slots=True)
class _InHand:
    """The messages of a queue that a group has popped in order; times in milliseconds.

    Attributes:
        offsets: queue offsets of the messages.
        visible: when a message is redelivered, if that is not the end of the invisible time.
        counts: how often a message was popped before, if it was.
        acked: queue offsets that are acknowledged.
        uncounted: queue offsets whose next delivery is not counted; forgotten at a restart.
        log_end: physical offset of the log's end at the pop; 0 if unknown.
    """

    attempt_id: str | None
    pop_time: int
    invisible_time: int
    offsets: list[int]
    visible: dict[int, int] = field(default_factory=dict[int, int])
    counts: dict[int, int] = field(default_factory=dict[int, int])
    acked: set[int] = field(default_factory=set[int])
    uncounted: set[int] = field(default_factory=set[int])
    log_end: int = 0

    @property
    def free_at(self) -> int:
        """When none of it blocks the queue any more; 0 if all are acknowledged."""
        until = self.pop_time + self.invisible_time
        waiting = (self.visible.get(at, until) for at in self.offsets if at not in self.acked)
        return max(waiting, default=0)

    @property
    def next_offset(self) -> int:
        """The first queue offset that is not acknowledged."""
        waiting = (offset for offset in self.offsets if offset not in self.acked)
        return next(waiting, self.offsets[-1] + 1)

    def counts_after(self, offsets: Sequence[int]) -> dict[int, int]:
        """Return how often messages were popped before, if they are popped again now."""
        before = set(self.offsets)
        counts = {
            at: self.counts.get(at, 0) + (at not in self.uncounted)
            for at in offsets
            if at in before
        }
        return {at: count for at, count in counts.items() if count}


class Ordered:
    """The messages that groups have popped in order."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._store, self._now = state.store, state.store.clock.milliseconds
        self._file = KeptTable[ConsumerOrderInfos](state, runtime, ConsumerOrderInfos, self._gather)
        self._queues: dict[QueueKey, _InHand] = {}
        for name, queues in self._file.found.table.items():
            topic, _, group = name.partition(_SEPARATOR)
            for queue_id, info in queues.items():
                key = QueueKey(topic, group, queue_id)
                if info.offsets and self._is_alive(key, info):
                    self._queues[key] = _loaded(info)

    def _is_alive(self, key: QueueKey, info: OrderInfo) -> bool:
        """Return whether the queue still has the messages that were popped.

        The process may have been killed after the topic or the group was deleted, and before the
        file was written.
        """
        if 0 < info.log_end < self._store.incarnations.group_before(key.group):
            return False
        try:
            head = self._store.reads.head_from(key.topic, key.queue_id, info.offsets[0])
        except StoreError:
            return True  # A queue that cannot be read now is reported elsewhere.
        if head is None:
            return False
        return not info.log_end or head.physical_offset < info.log_end

    def is_blocked(self, key: QueueKey, attempt_id: str | None = None) -> bool:
        """Return whether a queue must wait; never for the attempt that has popped it."""
        found = self._queues.get(key)
        if found is None or (attempt_id is not None and found.attempt_id == attempt_id):
            return False
        return self._now() < found.free_at

    def free_at(self, key: QueueKey) -> int:
        """Return when a queue is free (ms); 0 if no message of it is popped."""
        found = self._queues.get(key)
        return found.free_at if found else 0

    def take(
        self,
        key: QueueKey,
        attempt_id: str | None,
        pop_time: int,
        invisible_time: int,
        offsets: Sequence[int],
        info: PopInfo,
    ) -> Callable[[], None]:
        """Note that messages are popped now; add that to the answer.

        Returns:
            A function that undoes it, for messages that are sent to nobody.
        """
        old = self._queues.get(key)
        new = _InHand(attempt_id, pop_time, invisible_time, list(offsets))
        new.log_end = self._store.watermarks.end
        if old is not None and attempt_id is not None and old.attempt_id == attempt_id:
            new.counts = old.counts
        elif old is not None:
            new.counts = old.counts_after(offsets)
        self._queues[key] = new
        least = min((new.counts.get(at, 0) for at in offsets), default=0)
        info.add_counts(key.topic, key.queue_id, new.counts.items(), least)
        self._file.change()
        return partial(self._undo, key, new, old)

    def _undo(self, key: QueueKey, new: _InHand, old: _InHand | None) -> None:
        """Let a queue be as it was before a pop, unless it has changed since."""
        if self._queues.get(key) is not new:
            return
        if old is None:
            del self._queues[key]
        else:
            self._queues[key] = old
        self._file.change()

    def acknowledge(self, key: QueueKey, queue_offset: int, pop_time: int) -> int | None:
        """Note that a message was consumed; return the offset to commit.

        None if this pop does not have the queue now: another one has it, or the topic or the group
        was deleted since; -1 if the message is not one of these.

        Upstream commits the offset of any message if it knows no pop of the queue. That would skip
        messages of a topic that was created again.
        """
        found = self._queues.get(key)
        if found is None or pop_time != found.pop_time:
            return None
        if queue_offset not in found.offsets:
            return -1
        found.acked.add(queue_offset)
        self._file.change()
        return found.next_offset

    def change_time(
        self,
        key: QueueKey,
        queue_offset: int,
        pop_time: int,
        visible: int,
        *,
        is_suspended: bool = False,
    ) -> None:
        """Change when a message is redelivered (ms).

        Args:
            is_suspended: whether the redelivery is not counted.
        """
        found = self._queues.get(key)
        if found is not None and found.pop_time == pop_time and queue_offset in found.offsets:
            found.visible[queue_offset] = visible
            if is_suspended:
                found.uncounted.add(queue_offset)
            self._file.change()

    def forget(self, key: QueueKey) -> None:
        """Release all messages of a queue."""
        if self._queues.pop(key, None) is not None:
            self._file.change()

    def clear(self) -> None:
        """Release all messages."""
        self._queues.clear()
        self._file.change()

    def topic_ended(self, topic: str) -> Job[None]:
        """Release the messages of a topic."""
        return forget_some(self._queues, lambda key: key.topic == topic, self.forget)

    def group_ended(self, group: str) -> Job[None]:
        """Release the messages of a group."""
        return forget_some(self._queues, lambda key: key.group == group, self.forget)

    def _gather(self) -> Job[Members]:
        oldest = self._now() - _FORGET_AFTER
        table: dict[str, dict[int, object]] = {}
        for key in list(self._queues):
            found = self._queues.get(key)
            if found is not None and found.pop_time < oldest:
                del self._queues[key]
            elif found is not None:
                queues = table.setdefault(f"{key.topic}{_SEPARATOR}{key.group}", {})
                queues[key.queue_id] = msgspec.to_builtins(_kept(found))
            yield
        return {"table": table}


def check_attempt_id(attempt_id: str | None) -> None:
    """Refuse an attempt id that is too long to store.

    Raises:
        RemotingError: the id is too long.
    """
    if attempt_id is not None and len(attempt_id) > _LONGEST_ATTEMPT_ID:
        reason = (
            f"the attemptId has {len(attempt_id)} characters; the maximum is "
            f"{_LONGEST_ATTEMPT_ID}; use a UUID"
        )
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)


def _loaded(info: OrderInfo) -> _InHand:
    first, *distances = info.offsets
    offsets = [first, *(first + distance for distance in distances)]
    return _InHand(
        attempt_id=info.attempt_id,
        pop_time=info.pop_time,
        invisible_time=info.invisible_time or 0,
        offsets=offsets,
        visible=dict(info.next_visible_times),
        counts=dict(info.consumed_counts),
        acked={at for number, at in enumerate(offsets) if info.commit_offset_bit >> number & 1},
        log_end=info.log_end,
    )


def _kept(found: _InHand) -> OrderInfo:
    first, *others = found.offsets
    bits = (1 << number for number, at in enumerate(found.offsets) if at in found.acked)
    return OrderInfo(
        pop_time=found.pop_time,
        invisible_time=found.invisible_time,
        offsets=[first, *(offset - first for offset in others)],
        next_visible_times=found.visible,
        consumed_counts=found.counts,
        last_consume_timestamp=found.pop_time,
        commit_offset_bit=sum(bits),
        attempt_id=found.attempt_id,
        log_end=found.log_end,
    )
