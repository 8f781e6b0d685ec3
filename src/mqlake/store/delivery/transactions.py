"""Transactions: prepare, commit, roll back, and check producers that do not answer.

Upstream: `TransactionalMessageServiceImpl`, `EndTransactionProcessor`.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Generator
from typing import NamedTuple

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import properties
from mqlake.formats.host import decode_host
from mqlake.formats.properties import PGROUP
from mqlake.formats.record import Record
from mqlake.formats.topic_names import DISCARDED_TOPIC, HALF_TOPIC
from mqlake.metrics.counts import Counts, Histograms
from mqlake.storage.clock import Clock
from mqlake.store.append.checks import Refusal, encode_properties, illegal
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.config_store import ConfigStore
from mqlake.store.delivery.half_queue import HalfQueue
from mqlake.store.delivery.put_again import Put, is_usable_topic, read_at, real_queue
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.delivery.timer_messages import asks_for_timer, check_time
from mqlake.store.delivery.transaction_messages import (
    CHECK_TIMES,
    FIRST_OFFSET,
    IMMUNITY,
    committed,
    discarded,
    half_of,
    longest_half,
    number,
    op_of,
    renewed,
)
from mqlake.store.live_settings import Current
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.services import Service
from mqlake.store.settings import StoreSettings
from mqlake.store.stored import Stored

_HOUR = 60 * 60 * 1000
_GO_ON_INTERVAL = 100
_MOST_HALVES = 1000
_SECOND = 1000
_BOUNDS = tuple(s * _SECOND for s in (5, 60, 10 * 60, 60 * 60, 12 * 60 * 60, 24 * 60 * 60))
"""Upper bounds of RocketMQ's histogram of a transaction's duration, milliseconds."""

_log = logging.getLogger(__name__)


class EndStatus(enum.StrEnum):
    """The result of ending a transaction."""

    OK = "OK"
    NOT_FOUND = "NOT_FOUND"
    """There is no half message at this physical offset."""
    WRONG_GROUP = "WRONG_GROUP"
    """The half message belongs to another producer group."""
    WRONG_OFFSET = "WRONG_OFFSET"
    """The half message has another queue offset."""
    TOO_LATE = "TOO_LATE"
    """Its own CHECK_IMMUNITY_TIME_IN_SECONDS is over: only the answer to a check counts."""
    ALREADY_ENDED = "ALREADY_ENDED"
    """It was committed or rolled back before; nothing was done."""
    TOPIC_DELETED = "TOPIC_DELETED"
    """The topic of the message was deleted after the half message was put: the transaction has
    ended, and the message is dropped."""
    NOT_PUT = "NOT_PUT"
    """The message was not put: see the result of the put."""


class Ended(NamedTuple):
    """The end of a transaction: its status, and the put of the message for consumers, if there was
    one.
    """

    status: EndStatus
    put: PutResult | None = None


class CheckBack(NamedTuple):
    """A check: a question to a producer group about how a transaction ended.

    Attributes:
        group: the producer group; any member may answer with `end(…, is_answer=True)`.
        topic, queue_id: the target of the message.
        half: the half message as it is now: the answer must contain its offsets.
        properties: the properties in the half message's record.
    """

    group: str
    topic: str
    queue_id: int
    half: Record
    properties: bytes


class Transactions:
    """The transactions of one live store. For the store's thread.

    Only the op messages record what has ended, so another process continues from the files. If a
    process is killed between a commit and its op message, the producer is asked again.

    Attributes:
        committed, rolled_back: how many transactions ended so since the start, by topic.
        durations: milliseconds from when a committed message was made until its commit, by topic.

    Args:
        put: puts a new message as it is.
        redelivery: puts a half message again, or its op message.
        put_final: puts a committed message, which may ask for a delay.
    """

    def __init__(
        self,
        *,
        log: OwnedCommitLog,
        queues: OwnedQueues,
        config: ConfigStore,
        put: Put,
        redelivery: Redelivery,
        put_final: Put,
        settings: Current[StoreSettings],
        clock: Clock,
    ) -> None:
        self._log, self._queues, self._config = log, queues, config
        self._put, self._redelivery, self._put_final = put, redelivery, put_final
        self._settings, self._clock = settings, clock
        self._halves: dict[int, HalfQueue] = {}
        self._unwritten: list[tuple[int, int]] = []
        self._round_started = 0
        self._is_behind = False
        self.committed, self.rolled_back, self.durations = Counts(), Counts(), Histograms(_BOUNDS)
        self._asks: Callable[[CheckBack], None] | None = None

    def ask_with(self, asks: Callable[[CheckBack], None]) -> None:
        """Call a function with each half message whose producer is to be asked, once it was put
        again. Before this call, nobody is asked.
        """
        self._asks = asks

    def begin(self) -> None:
        """Examine the half messages again, from the committed offsets of the group."""
        self._halves.clear()
        self._unwritten.clear()

    def services(self) -> list[Service]:
        """Return a service that checks at RocketMQ's interval, and continues if one call was not
        enough.
        """

        def start() -> None:
            self.check()

        def go_on() -> None:
            self._write_ops()
            if self._is_behind:
                self._look_through(_MOST_HALVES)
            self.keep()

        settings = self._settings
        return [
            Service(lambda: settings.now.transaction_check_interval, start, "transactionChecks"),
            Service(_GO_ON_INTERVAL, go_on, "transactions"),
        ]

    # Begin and end

    def prepare(self, message: Message, group: str | None = None) -> PutResult:
        """Put a half message: consumers do not see it before `end`.

        Args:
            group: the producer group that can be asked; if empty, the PGROUP property's.
        """
        try:
            return self._put(self._half_of(message, group))
        except Refusal as refusal:
            return refusal.result

    def _half_of(self, message: Message, group: str | None) -> Message:
        if message.queue_id < 0 or not is_usable_topic(message.topic, self._settings.now):
            raise illegal(f"queue {message.queue_id} of topic {message.topic!r} does not exist")
        try:
            half = half_of(message, encode_properties(message), group)
        except FormatError as error:
            raise illegal(f"properties: {error}") from None
        data = half.encoded_properties or b""
        pairs = properties.decode_properties(data)
        if asks_for_timer(pairs):
            check_time(pairs, self._clock.milliseconds(), self._settings.now)
        if len(data) > (most := longest_half(pairs)):
            raise Refusal(
                PutStatus.PROPERTIES_SIZE_EXCEEDED,
                f"the properties of the half message need {len(data)} bytes; the maximum is "
                f"{most}: the rest is reserved for the properties that it gets until its "
                "transaction has ended",
            )
        return half

    def end(
        self,
        physical_offset: int,
        queue_offset: int,
        group: str,
        *,
        commit: bool,
        is_answer: bool = False,
    ) -> Ended:
        """Commit a half message, or roll it back.

        Args:
            physical_offset, queue_offset: the offsets of the half message.
            group: the producer group that sent it.
            is_answer: whether this answers a check.
        """
        half = self._log.record(physical_offset) if physical_offset < self._log.end else None
        stored = read_at(self._log, half) if half is not None else None
        if half is None or stored is None or half.topic != HALF_TOPIC:
            return Ended(EndStatus.NOT_FOUND)
        refusal = self._why_not(half, queue_offset, group, is_answer=is_answer)
        if refusal is not None:
            return Ended(refusal)
        put, status = None, EndStatus.OK
        if commit and self._is_dead(half):
            status = EndStatus.TOPIC_DELETED
        elif commit:
            message = committed(stored)
            if message is None:
                return Ended(EndStatus.NOT_FOUND)
            put = self._put_final(message)
            if not put.is_ok:
                return Ended(EndStatus.NOT_PUT, put)
        self._half_queue(half.queue_id).ended.add(queue_offset)
        self._unwritten.append((half.queue_id, queue_offset))
        self._write_ops()
        if status is EndStatus.OK:
            self._count(half, commit=commit)
        return Ended(status, put)

    def _count(self, half: Record, *, commit: bool) -> None:
        target = real_queue(half.properties)
        topic = target[0] if target else ""
        if commit:
            self.committed.add((topic,))
            age = self._clock.milliseconds() - half.born_timestamp
            self.durations.add((topic,), max(0, age))
        elif not self._redelivery.was_deleted(topic, half):  # Otherwise its totals have ended.
            self.rolled_back.add((topic,))

    def count_waiting(self) -> Generator[None, None, int]:
        """Return how many half messages have not ended, a bit at a time.

        Those of queues that were not examined yet are not counted.
        """
        found = 0
        for queue in list(self._halves.values()):
            found += yield from queue.count_waiting()
        return found

    def _is_dead(self, half: Record) -> bool:
        """Return whether the topic of a half message was deleted after it was put."""
        target = real_queue(half.properties)
        return target is not None and self._redelivery.drops(target[0], half)

    def _why_not(
        self, half: Record, queue_offset: int, group: str, *, is_answer: bool
    ) -> EndStatus | None:
        if half.properties.get(PGROUP) != group:
            return EndStatus.WRONG_GROUP
        if half.queue_offset != queue_offset:
            return EndStatus.WRONG_OFFSET
        immunity = number(half, IMMUNITY)
        if immunity is not None and not is_answer:
            age = self._clock.milliseconds() - half.born_timestamp
            if age > max(immunity * 1000, self._settings.now.transaction_time_out):
                return EndStatus.TOO_LATE
        queue = self._half_queue(half.queue_id)
        queue.read_ops()
        return EndStatus.ALREADY_ENDED if queue_offset in queue.ended else None

    def _write_ops(self) -> None:
        """Put the op messages of ended transactions; one that is refused for now is tried again."""
        while self._unwritten:
            queue_id, queue_offset = self._unwritten[0]
            put = self._redelivery.put(op_of(queue_id, queue_offset))
            if not put.count and not put.is_permanent:
                return
            if not put.count:
                _log.error(
                    "the end of a transaction was not recorded: half message %d of queue %d: "
                    "%s; its producer is asked again",
                    queue_offset,
                    queue_id,
                    put.reason,
                )
            del self._unwritten[0]

    # Check

    def check(self, most: int = _MOST_HALVES) -> bool:
        """Examine the half messages from the first unfinished one; return whether to continue.

        Half messages that ended are finished. For others, the producer is asked: the half message
        is put again after the others, with its TRANSACTION_CHECK_TIMES.
        After `transactionCheckMax` times, or `fileReservedTime` hours, it goes to the topic of
        discarded half messages; so does one that can never be put again. The pass ends at a half
        message that is too young, or refused for now.

        Args:
            most: half messages of each queue in this call; the others are left for later calls.
        """
        self._write_ops()
        self._round_started = self._clock.milliseconds()
        self._look_through(most)
        self.keep()
        return self._is_behind

    def keep(self) -> None:
        """Commit what is durable; to be called before the consumer offsets are written."""
        for queue in self._halves.values():
            queue.keep()

    def _look_through(self, most: int) -> None:
        asked: list[CheckBack] = []
        self._is_behind = False
        half_topic = self._config.topics.get(HALF_TOPIC)
        try:
            for queue_id in range(max(1, half_topic.read_queue_nums if half_topic else 1)):
                queue = self._half_queue(queue_id)
                queue.read_ops()
                queue.skip_removed()
                self._is_behind |= self._walk(queue, most, asked)
                queue.forget_done()
        finally:  # Also if the disk cannot read the next half message: these were put again.
            if self._asks is not None:
                for question in asked:
                    self._asks(question)

    def _walk(self, queue: HalfQueue, most: int, asked: list[CheckBack]) -> bool:
        end = queue.end
        for _ in range(most):
            if queue.position >= end:
                return False
            if queue.position not in queue.ended:
                half = queue.half(queue.position)
                if half is None:
                    self._redelivery.note_missing(HALF_TOPIC, queue.queue_id, queue.position)
                elif not self._is_done(queue, half, asked):
                    return False
            queue.finish_first()
        return True

    def _is_done(self, queue: HalfQueue, stored: Stored, asked: list[CheckBack]) -> bool:
        """Decide about a half message that has not ended; return whether the pass continues after
        it.
        """
        half, settings, now = stored.record, self._settings.now, self._clock.milliseconds()
        age = now - half.born_timestamp
        times = number(half, CHECK_TIMES) or 0
        first = number(half, FIRST_OFFSET)
        if (first is not None and first in queue.ended) or self._is_dead(half):
            return True
        is_old = age > settings.file_reserved_time * _HOUR
        if times >= settings.transaction_check_max or is_old:
            return self._discard(stored)
        if half.store_timestamp >= self._round_started:
            return False
        immunity = number(half, IMMUNITY)
        if immunity is None and 0 <= age <= settings.transaction_time_out:
            return False
        if immunity is not None and first != -1:
            limit = settings.transaction_time_out if immunity == -1 else immunity * 1000
            if age <= limit:
                origin = half.queue_offset if first is None else first
                changes = {FIRST_OFFSET: str(origin)}
                return self._redelivery.settle(renewed(stored, changes), stored)
        return self._ask(stored, times + 1, asked)

    def _discard(self, half: Stored) -> bool:
        self._config.topics.ensure(DISCARDED_TOPIC, 1)
        return self._redelivery.settle(discarded(half), half)

    def _ask(self, stored: Stored, times: int, asked: list[CheckBack]) -> bool:
        if self._asks is None:
            return False
        half, changes = stored.record, {CHECK_TIMES: str(times)}
        copy = renewed(stored, changes)
        put = self._redelivery.put(copy)
        if put.is_permanent:
            return self._redelivery.put_aside(stored, f"its producer cannot be asked: {put.reason}")
        if not put.count:
            return False
        again = msgspec.structs.replace(
            half,
            properties={**half.properties, **changes},
            queue_offset=put.queue_offset,
            physical_offset=put.physical_offset,
            size=put.size,
            store_timestamp=put.store_timestamp,
            store_host=decode_host(put.store_host),
        )
        topic, queue_id = real_queue(half.properties) or ("", 0)
        group, data = half.properties.get(PGROUP, ""), copy.encoded_properties or b""
        asked.append(CheckBack(group, topic, queue_id, again, data))
        return True

    def _half_queue(self, queue_id: int) -> HalfQueue:
        if queue_id not in self._halves:
            offsets = self._config.consumer_offsets
            self._halves[queue_id] = HalfQueue(self._log, self._queues, offsets, queue_id)
        return self._halves[queue_id]
