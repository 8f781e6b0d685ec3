"""Read messages from the queues of a topic, for one pop.

Upstream: `PopMessageProcessor.popMsgFromTopic`, `popMsgFromQueue`, `getPopOffset`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from struct import Struct

from mqlake.broker.filter.subscriptions import Choice
from mqlake.broker.filter.verdicts import UndecidedError, Verdicts
from mqlake.broker.pop.check_points import CheckPoint
from mqlake.broker.pop.in_flight import InFlight, Pop, QueueKey
from mqlake.broker.pop.ordered import Ordered
from mqlake.broker.pop.retried import Retried
from mqlake.broker.pop.revive_topic import ReviveTopic
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats import record as records
from mqlake.formats.own_properties import OPTIONAL, POP_RECEIPT
from mqlake.formats.properties import MAX_LENGTH
from mqlake.formats.property_edits import edit
from mqlake.formats.record import QUEUE_OFFSET_AT
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.receipts import ORDERED, PopInfo, Receipt
from mqlake.protocol.naming import RETRY_PREFIX
from mqlake.protocol.retry_topics import mark_of
from mqlake.remoting.slices import Job
from mqlake.store.port import LiveGetResult
from mqlake.store.results import Status
from mqlake.store.stored import read_stored

FROM_FIRST = 0
"""`initMode`: a group without an offset begins at the first message, otherwise at the last."""

MOST_BYTES = 8 << 20
"""Maximum bytes of the messages of one answer, unless it is a single message: clients accept frames
of 16 MiB.
"""

_MOST_TRIES = 8
_IN_MEMORY = 0.4
"""Share of the machine's memory that is assumed to contain the end of the log."""
_QUEUE_OFFSET = Struct(">q")
_WRONG_OFFSET = (Status.OFFSET_TOO_SMALL, Status.OFFSET_OVERFLOW_BADLY, Status.OFFSET_FOUND_NULL)


@dataclass(slots=True)
class PopRead:
    """The parameters of a client's pop.

    Attributes:
        topic: the client's name of the topic; messages of its retry topic get this name.
        init_mode: where a group without an offset begins.
        is_ordered: whether each queue is read in its order.
    """

    topic: str
    group: str
    most: int
    invisible_time: int
    init_mode: int
    choice: Choice
    is_ordered: bool = False
    attempt_id: str | None = None


@dataclass(slots=True)
class Taken:
    """What a pop has read so far.

    Attributes:
        size: bytes of the messages.
        is_full: whether a message was left because of the size; it is still available.
        rest: the number of messages left in the queues that were read.
        free_at: when (ms) the first waiting queue is free; None if none waits.
        refusal: why messages of one of those queues were not popped; None if there is no reason.
        pops: what was noted of the messages that were not popped in order.
        undos: functions that undo what was noted of the others.
        verdicts: for which messages the condition holds.
    """

    pop_time: int
    revive_queue_id: int
    bodies: list[bytes | memoryview] = field(default_factory=list[bytes | memoryview])
    info: PopInfo = field(default_factory=PopInfo)
    size: int = 0
    is_full: bool = False
    rest: int = 0
    free_at: int | None = None
    refusal: RemotingError | None = None
    pops: list[Pop] = field(default_factory=list[Pop])
    undos: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    verdicts: Verdicts = field(default_factory=lambda: Verdicts(Choice()))

    def note_sent(self) -> None:
        """Note that the messages were sent to the client."""
        for pop in self.pops:
            pop.note_sent()


class Reading:
    """Reads queues for groups, and notes popped messages."""

    def __init__(
        self,
        state: BrokerState,
        runtime: BrokerRuntime,
        in_flight: InFlight,
        ordered: Ordered,
        revive_topic: ReviveTopic,
    ) -> None:
        self._state, self._runtime, self._store = state, runtime, state.store
        self._offsets = self._store.config.consumer_offsets
        self._in_flight, self._ordered, self._revive_topic = in_flight, ordered, revive_topic
        self._retried = Retried(state, runtime)

    def start(self, wanted: PopRead) -> Taken:
        """Return a pop that has read nothing yet."""
        revive = ORDERED if wanted.is_ordered else self._revive_topic.next_revive_queue()
        now = self._store.clock.milliseconds()
        return Taken(now, revive, verdicts=Verdicts(wanted.choice))

    def take(self, wanted: PopRead, topic: str, queue_id: int, taken: Taken) -> Job[None]:
        """Read the messages of a queue, up to the total that is wanted."""
        key = QueueKey(topic, wanted.group, queue_id)
        tries = 0
        while True:
            # Start again each time: others may have popped meanwhile, or deleted the topic.
            if topic not in self._state.topics or wanted.group not in self._state.groups:
                return  # A reset waits until both exist again.
            self._take_reset(key)
            taken.verdicts.resume()
            try:
                following, is_done = self._try(wanted, key, taken)
            except UndecidedError:
                yield
                continue
            tries += 1
            if is_done or tries == _MOST_TRIES:
                high = self._store.reads.queue(topic, queue_id).max_offset
                taken.rest += max(0, high - following) if following is not None else 0
                return
            yield

    def _try(self, wanted: PopRead, key: QueueKey, taken: Taken) -> tuple[int | None, bool]:
        """Read a queue once.

        Returns:
            The offset after the messages, None if none may be popped; and whether these are all.
        """
        try:
            offset = self._next_offset(key, wanted.init_mode)
        except RemotingError as refusal:
            taken.refusal = refusal
            return None, True
        if offset is None:
            return None, True
        if wanted.is_ordered and self._ordered.is_blocked(key, wanted.attempt_id):
            free_at = self._ordered.free_at(key)
            taken.free_at = free_at if taken.free_at is None else min(taken.free_at, free_at)
            return None, True
        if len(taken.bodies) >= wanted.most or taken.is_full:
            return offset, True
        result = self._read(wanted, key, offset, taken)
        if taken.bodies and taken.size + result.size > MOST_BYTES:
            # The first message is read whatever its size. It is left for the next pop.
            taken.is_full = True
            return offset, True
        following = result.next_offset
        if result.status in _WRONG_OFFSET and following != offset:
            if following < offset or wanted.is_ordered:
                self._go_to(key, following)
            else:  # Earlier messages may be popped now.
                self._keep_pop(wanted, key, offset, (), result, taken)
            return following, False
        is_done = self._keep(wanted, key, offset, result, taken) or following <= offset
        return following, is_done

    def give_back(self, taken: Taken) -> None:
        """Let messages that were sent to nobody be popped again, without counting this delivery."""
        for pop in taken.pops:
            self._revive_topic.give_back(pop)
        for undo in taken.undos:
            undo()

    def unread(self, key: QueueKey) -> tuple[int, int]:
        """Return where a group continues in a queue, and how many messages there are."""
        low, high = self._store.reads.queue(key.topic, key.queue_id)
        known = self._offsets.query(key.group, key.topic, key.queue_id)
        offset = max(low if known is None else known, self._in_flight.next_offset(key) or 0)
        return offset, max(0, high - offset)

    # Where to begin

    def _take_reset(self, key: QueueKey) -> None:
        offset = self._offsets.take_reset(key.group, key.topic, key.queue_id)
        if offset is not None:
            self._ordered.forget(key)
            self._go_to(key, offset)

    def _go_to(self, key: QueueKey, offset: int) -> None:
        self._in_flight.forget(key)
        self._offsets.commit(key.group, key.topic, key.queue_id, offset)

    def _next_offset(self, key: QueueKey, init_mode: int) -> int | None:
        """Return where a group continues in a queue; None if it has nothing there, and no offset.

        Raises:
            RemotingError: no more offsets may be stored, and without one, messages would be popped
                again and again.
        """
        known = self._offsets.query(key.group, key.topic, key.queue_id)
        if known is None:
            known = self._first_offset(key, init_mode)
            if not self._state.offset_room.has_room(key.group):
                if self._store.reads.queue(key.topic, key.queue_id).max_offset <= known:
                    return None
                self._state.offset_room.check(key.group, key.topic)
            self._offsets.commit(key.group, key.topic, key.queue_id, known)
        return max(known, self._in_flight.next_offset(key) or 0)

    def _first_offset(self, key: QueueKey, init_mode: int) -> int:
        """Return where a group without an offset begins in a queue.

        This is the last message, unless the client or the topic asks for the first. As in upstream,
        it is also the first if the whole queue is so young that it is in memory.
        """
        low, high = self._store.reads.queue(key.topic, key.queue_id)
        if init_mode == FROM_FIRST or key.topic.startswith(RETRY_PREFIX):
            return low
        if low == 0 and self._is_in_memory(key):
            return 0
        return max(0, high - 1)

    def _is_in_memory(self, key: QueueKey) -> bool:
        head = self._store.reads.head_from(key.topic, key.queue_id, 0)
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        begin = self._store.watermarks.end if head is None else head.physical_offset
        return self._store.watermarks.end - begin <= _IN_MEMORY * memory

    # What is available

    def _read(self, wanted: PopRead, key: QueueKey, offset: int, taken: Taken) -> LiveGetResult:
        settings = self._runtime.settings
        return self._store.reads.get(
            key.topic,
            key.queue_id,
            offset,
            wanted.most - len(taken.bodies),
            tags=wanted.choice.tags,
            max_bytes=min(
                settings.max_transfer_bytes_on_message_in_memory,
                max(1, MOST_BYTES - taken.size),
            ),
        )

    def _keep(
        self, wanted: PopRead, key: QueueKey, start: int, result: LiveGetResult, taken: Taken
    ) -> bool:
        """Note the messages as popped; return whether any is selected."""
        chosen = self._chosen(wanted, key, result, taken.verdicts)
        offsets = [offset for offset, _ in chosen]
        if offsets:
            start = min(start, offsets[0])  # An inner batch may begin before the requested offset.
        # Nothing is noted as popped before all that may fail is done.
        bodies = [self._body(wanted, key, data, start, taken) for _, data in chosen]
        if wanted.is_ordered:
            self._keep_ordered(wanted, key, start, offsets, result, taken)
        elif result.next_offset > start:
            self._keep_pop(wanted, key, start, offsets, result, taken)
        if not chosen:
            return False
        size = sum(len(data) for _, data in chosen)
        self._state.stats.got(key.group, key.topic, len(offsets), size)
        taken.info.add(key.topic, key.queue_id, start, offsets)
        taken.bodies += bodies
        taken.size += sum(map(len, bodies))
        return True

    def _chosen(
        self, wanted: PopRead, key: QueueKey, result: LiveGetResult, verdicts: Verdicts
    ) -> Sequence[tuple[int, memoryview]]:
        """Return the queue offsets and the bytes of the selected messages.

        Records are decoded only for a condition, and those of retry topics: to decode all would
        slow down every pop.

        Raises:
            UndecidedError: the condition takes longer than a slice.
        """
        is_retry = key.topic.startswith(RETRY_PREFIX)
        if wanted.choice.condition is None and not is_retry:
            return [
                (_QUEUE_OFFSET.unpack_from(data, QUEUE_OFFSET_AT)[0], data) for data in result.raw
            ]
        return [
            (record.queue_offset, data)
            for record, data in zip(result.records, result.raw, strict=True)
            if verdicts.holds(record)
            and (not is_retry or self._retried.is_for(record, wanted.topic, wanted.group))
        ]

    def _keep_pop(
        self,
        wanted: PopRead,
        key: QueueKey,
        start: int,
        offsets: Sequence[int],
        result: LiveGetResult,
        taken: Taken,
    ) -> None:
        point = CheckPoint(
            start_offset=start,
            pop_time=taken.pop_time,
            invisible_time=wanted.invisible_time,
            count=len(offsets),
            queue_id=key.queue_id,
            topic=key.topic,
            group=key.group,
            distances=[offset - start for offset in offsets],
            broker_name=self._runtime.settings.broker_name,
            log_end=self._store.watermarks.end,
        )
        pop = Pop(point, taken.revive_queue_id, result.next_offset)
        self._in_flight.add(pop, self._revive_topic.look_at(point))
        if offsets:
            taken.pops.append(pop)

    def _keep_ordered(
        self,
        wanted: PopRead,
        key: QueueKey,
        start: int,
        offsets: Sequence[int],
        result: LiveGetResult,
        taken: Taken,
    ) -> None:
        if not offsets:
            if result.next_offset > start:
                self._go_to(key, result.next_offset)
            return
        undo = self._ordered.take(
            key, wanted.attempt_id, taken.pop_time, wanted.invisible_time, offsets, taken.info
        )
        taken.undos.append(undo)
        self._go_to(key, start)

    def _body(
        self, wanted: PopRead, key: QueueKey, data: memoryview, start: int, taken: Taken
    ) -> bytes | memoryview:
        """Return a record for the client, under the name of the requested topic."""
        if key.topic == wanted.topic:
            return data
        record = records.decode(data, crc=False)  # The store has checked it.
        receipt = Receipt(
            start,
            taken.pop_time,
            wanted.invisible_time,
            taken.revive_queue_id,
            mark_of(key.topic),
            self._runtime.settings.broker_name,
            queue_id=key.queue_id,
            queue_offset=record.queue_offset,
        )
        stored = read_stored(data)
        properties = stored.properties if stored else b""
        if POP_RECEIPT not in record.properties:
            properties = edit(properties, add={POP_RECEIPT: receipt.text})
        if len(properties) > MAX_LENGTH:
            properties = edit(properties, [name for name in OPTIONAL if name != POP_RECEIPT])
        if len(properties) > MAX_LENGTH:
            # If a message has no receipt, clients create one, and use its topic to tell where it
            # is.
            return data
        return records.encode(
            topic=wanted.topic,
            body=record.body,
            properties=properties,
            queue_id=record.queue_id,
            queue_offset=record.queue_offset,
            physical_offset=record.physical_offset,
            flag=record.flag,
            sys_flag=record.sys_flag,
            born_timestamp=record.born_timestamp,
            born_host=record.born_host,
            store_timestamp=record.store_timestamp,
            store_host=record.store_host,
            reconsume_times=record.reconsume_times,
            prepared_transaction_offset=record.prepared_transaction_offset,
        )
