"""Read one queue for as long as the consumer owns it (upstream: `DefaultMQPushConsumerImpl`).

The next pull is sent before the last answer is decoded, so that the broker works meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mqlake.client.consumer.broker_calls import BrokerCalls, Pulled, PullStatus
from mqlake.client.consumer.consumed import ConsumedMessage, Finisher
from mqlake.client.consumer.offsets import Offsets
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.statistics import Statistics
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.errors import BrokerError
from mqlake.errors import MqlakeError
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Body
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION, MAY_SUSPEND, PullHeader

_SUSPEND_MS = 15_000
_FULL, _PAUSED, _BUSY, _IDLE, _FAILED = 0.05, 0.5, 0.02, 0.2, 1.0
"""Seconds until a queue is tried again."""
_QUICK = 0.1
"""Seconds. An answer without anything new that arrives sooner was not held by the broker."""
_STALLED = 30.0
"""Seconds for which messages may be unfinished in a full queue before that is logged."""


class DecodedPull(NamedTuple):
    """The messages of a pull that are to be handed over.

    Attributes:
        last_offset: the queue offset of the last record before bytes that are not a record; None if
            all bytes are records.
    """

    messages: Sequence[ConsumedMessage]
    last_offset: int | None = None


Decode = Callable[[Body, MessageQueue, SelectedTopic, int], DecodedPull]
"""Decodes a pull: its records, the subscription, and the offset of the pull.

Raises `FormatError` if there are bytes that are not a record, and no message before them.
"""

_BUSY_CODES = frozenset((ResponseCode.FLOW_CONTROL, ResponseCode.SYSTEM_BUSY))

_log = logging.getLogger(__name__)


class _QueuePuller:
    """The state of reading one queue.

    Attributes:
        ahead: the pull that was sent before the last answer was decoded.
    """

    def __init__(self, held: QueueMessages, wanted: SelectedTopic) -> None:
        self.held, self.wanted = held, wanted
        self.ahead: asyncio.Task[tuple[float, Pulled]] | None = None

    @property
    def is_ahead(self) -> bool:
        """Return whether the next pull was sent."""
        return self.ahead is not None

    def take(self) -> asyncio.Task[tuple[float, Pulled]] | None:
        """Return the pull that was sent ahead, if one was; the caller awaits it."""
        ahead, self.ahead = self.ahead, None
        return ahead

    def cancel(self) -> None:
        """Discard the pull that was sent ahead."""
        if (ahead := self.take()) is not None:
            ahead.cancel()
            ahead.add_done_callback(_ignore)


class Pulling:
    """Reads queues into their held messages.

    Args:
        offer: called with a queue that may have something to hand over.
        moved: called if the next offset does not exist, with the offset to continue at. The queue
            is then no longer read.
        decode: makes messages of the records of a pull.
        states_subscription: whether each pull contains the subscription, because brokers do not
            know it.

    Attributes:
        paused: topics that are not read now.
    """

    def __init__(
        self,
        *,
        group: str,
        calls: BrokerCalls,
        offsets: Offsets,
        offer: Callable[[QueueMessages], None],
        settings: ConsumerSettings,
        finisher: Finisher,
        statistics: Statistics,
        moved: Callable[[QueueMessages, int], None],
        decode: Decode,
        states_subscription: bool = False,
    ) -> None:
        self._group, self._calls, self._offsets = group, calls, offsets
        self._offer, self._settings, self._finisher = offer, settings, finisher
        self._statistics = statistics
        self._moved, self._decode = moved, decode
        self._states_subscription = states_subscription
        self._loop = asyncio.get_running_loop()
        self.paused: set[str] = set()
        self._stalled: set[MessageQueue] = set()

    async def run(self, held: QueueMessages, wanted: SelectedTopic, delay: float) -> None:
        """Read a queue until it is dropped.

        Args:
            delay: seconds to wait first.
        """
        await asyncio.sleep(delay)
        reading = _QueuePuller(held, wanted)
        try:
            await self._read(reading)
        finally:
            reading.cancel()

    async def _read(self, reading: _QueuePuller) -> None:
        held, is_failing = reading.held, False
        while not held.is_dropped:
            held.last_pull = self._loop.time()
            try:
                if held.next_offset is None:
                    held.next_offset = await self._start(held.queue)
                    held.is_begun.set()
                if not reading.is_ahead and (wait := self._must_wait(held)):
                    await (held.shrunk(wait) if len(held) else asyncio.sleep(wait))
                    continue
                before = held.next_offset
                asked, pulled = await (reading.take() or self._pull(reading, before))
                held.last_pull = self._loop.time()
                if held.is_dropped:
                    return
                if pulled.status is PullStatus.OFFSET_ILLEGAL:
                    self._begin_elsewhere(held, before, pulled.next_offset)
                    return
                await self._read_ahead(reading, pulled)
                decoded = self._decode(pulled.data, held.queue, reading.wanted, before)
                is_failing = False
            except MqlakeError as error:
                held.is_begun.set()
                reading.cancel()
                is_busy = isinstance(error, BrokerError) and error.code in _BUSY_CODES
                if not is_busy and not is_failing:
                    is_failing = True
                    _log.warning("%s cannot be read now: %s", _name(held.queue), error)
                await asyncio.sleep(_BUSY if is_busy else _FAILED)
                continue
            if held.is_dropped:
                return
            next_offset = pulled.next_offset
            if decoded.last_offset is not None:
                # The next pull begins with bytes that are not a record, and fails.
                reading.cancel()
                next_offset = max(before, min(decoded.last_offset + 1, next_offset))
            self._take(held, decoded.messages, next_offset)
            count = sum(each.message_count() for each in decoded.messages)
            self._statistics.pulled(held.queue.topic, count, held.last_pull - asked)
            if next_offset <= before and held.last_pull < asked + _QUICK:
                # A broker that does not hold requests must not keep this client busy.
                await asyncio.sleep(_IDLE)

    async def _pull(self, reading: _QueuePuller, offset: int) -> tuple[float, Pulled]:
        """Pull from an offset; also return when the request was sent, in seconds."""
        asked, held = self._loop.time(), reading.held
        header = self._header(held, reading.wanted, offset)
        return asked, await self._calls.pull(held.queue, header)

    async def _read_ahead(self, reading: _QueuePuller, pulled: Pulled) -> None:
        """Send the next pull, unless the pulled messages may fill the queue's limit."""
        held, settings, offset = reading.held, self._settings, pulled.next_offset
        if pulled.status is not PullStatus.FOUND or offset <= (held.next_offset or 0):
            return
        count, size = len(held) + settings.pull_size, held.bytes + len(pulled.data)
        is_full = count >= settings.queue_messages or size >= settings.queue_bytes
        bounds = held.bounds
        is_wide = bounds is not None and offset - bounds[0] > settings.queue_span
        if is_full or (is_wide and not settings.in_order) or self._must_wait(held):
            return
        reading.ahead = self._loop.create_task(self._pull(reading, offset))
        # One round of the loop until the task runs, and one until its connection writes.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def _begin_elsewhere(self, held: QueueMessages, offset: int, next_offset: int) -> None:
        _log.warning(
            "%s: offset %d does not exist: continuing at %d",
            _name(held.queue),
            offset,
            next_offset,
        )
        self._moved(held, next_offset)

    def _take(
        self, held: QueueMessages, messages: Sequence[ConsumedMessage], next_offset: int
    ) -> None:
        for message in messages:
            message.finisher, message.queue = self._finisher, held.queue
        held.add(messages, next_offset)
        self._offer(held)

    def _must_wait(self, held: QueueMessages) -> float:
        """Return the seconds until the queue may be read again, 0 for now."""
        settings = self._settings
        if held.queue.topic in self.paused:
            return _PAUSED
        if not held.is_locked:
            return _PAUSED
        is_full = len(held) >= settings.queue_messages or held.bytes >= settings.queue_bytes
        is_wide = not settings.in_order and held.span > settings.queue_span
        if not (is_full or is_wide):
            self._stalled.discard(held.queue)
            return 0.0
        is_old = held.out_since(self._loop.time() - _STALLED)
        if is_old and held.queue not in self._stalled:
            self._stalled.add(held.queue)
            _log.warning(
                "%s is not read further: %d messages are waiting for ack or retry_later",
                _name(held.queue),
                len(held),
            )
        return _FULL

    def _header(self, held: QueueMessages, wanted: SelectedTopic, offset: int) -> PullHeader:
        committed = held.committed_offset or 0
        commits = committed > 0 and not self._settings.broadcasting
        flags = MAY_SUSPEND
        if self._states_subscription:
            commits = False
            flags |= HAS_SUBSCRIPTION
        return PullHeader(
            consumer_group=self._group,
            topic=held.queue.topic,
            queue_id=held.queue.queue_id,
            queue_offset=offset,
            max_msg_nums=self._settings.pull_size,
            sys_flag=flags | (COMMITS_OFFSET if commits else 0),
            commit_offset=committed if commits else 0,
            suspend_timeout_millis=_SUSPEND_MS,
            sub_version=wanted.version,
            subscription=wanted.expression if self._states_subscription else None,
            expression_type=wanted.expression_type,
            max_msg_bytes=self._settings.pull_bytes,
        )

    async def _start(self, queue: MessageQueue) -> int:
        """Return the offset at which to begin in a queue.

        Raises:
            MqlakeError: the offset is not known now. Neither the first nor the last offset is
                assumed.
        """
        found = await self._offsets.read(queue)
        if found is not None and found >= 0:
            return found
        start, is_retry = self._settings.consume_from, queue.topic.startswith(RETRY_PREFIX)
        if start == "first" or (start == "last" and is_retry):
            return await self._calls.start_of(queue)
        if start == "last" or is_retry:
            return await self._calls.end_of(queue)
        return await self._calls.offset_at(queue, start)


def _name(queue: MessageQueue) -> str:
    return f"{queue.topic}, queue {queue.queue_id} of {queue.broker_name}"


def _ignore(task: asyncio.Task[tuple[float, Pulled]]) -> None:
    """Handle the result of a pull that nobody waits for."""
    if not task.cancelled():
        task.exception()


def log_failure(task: asyncio.Task[None]) -> None:
    """Log why a task that reads a queue failed."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a queue is no longer read", exc_info=error)
