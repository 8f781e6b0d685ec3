"""Requests of queries to a cluster, repeated until it answers or time is up."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from mqlake.client.consumer.broker_calls import BrokerCalls, Pulled, PullStatus
from mqlake.client.errors import BrokerError, ClientError
from mqlake.client.instance import ClientInstance
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_messages
from mqlake.client.routes import TopicRoute
from mqlake.errors import FormatError, MqlakeError
from mqlake.formats.topic_names import OF_GROUPS
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.route import TopicList
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, PullHeader
from mqlake.protocol.namespace import Namespace
from mqlake.query.reading.conditions import Interval
from mqlake.query.reading.losses import is_internal

NOBODY = "TOOLS_CONSUMER"
"""A group that every broker has, for readers without a group."""

ALL = "*"

_PULL_BYTES = 4 << 20
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
"""Seconds between two tries."""
_AT_ONCE = 64
"""Maximum number of queues that are requested at the same time."""

_PASSING = frozenset(
    (
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.FLOW_CONTROL,
    )
)
"""Codes of temporary refusals."""

T = TypeVar("T")


class Mark(NamedTuple):
    """Distinguishes a record from any other one at the same queue offset.

    A topic that was created again has records at other physical offsets, and those of a new store
    have other store timestamps (ms).
    """

    physical_offset: int
    store_timestamp: int


class Brokers:
    """The brokers of a cluster, for one query.

    Args:
        instance: of the event loop that runs the coroutines.
        seconds: how long a request is repeated if a server does not answer.
    """

    def __init__(self, instance: ClientInstance, seconds: float) -> None:
        self._instance, self.seconds = instance, seconds
        self._calls = BrokerCalls(instance, NOBODY, Namespace())
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def patiently(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `ask` once it succeeds.

        Raises:
            BrokerError: a server refuses permanently; the message begins with `what`.
            ClientError: time is up, or the answer is invalid.
        """
        loop = asyncio.get_running_loop()
        begun, wait = loop.time(), _FIRST_WAIT
        while True:
            try:
                return await ask()
            except MqlakeError as error:
                code = getattr(error, "code", None)
                if code is not None and code not in _PASSING:
                    raise BrokerError(code, f"{what}: {error}") from None
                if isinstance(error, FormatError):
                    raise ClientError(f"{what}: {error}") from None
                left = begun + self.seconds - loop.time()
                if left <= 0:
                    raise ClientError(
                        f"{what}: {error}; tried for {self.seconds:g} s (option retryTimeout)"
                    ) from None
            await asyncio.sleep(min(wait, left))
            wait = min(2 * wait, _LONGEST_WAIT)

    # Topics and queues

    async def topics(self, pattern: str | None) -> list[str]:
        """Return the topics that a pattern matches; without a pattern, all topics of users."""
        found = await self._names(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        if pattern is not None and pattern.startswith("%"):
            names = [topic for topic in found if topic.startswith(OF_GROUPS)]
        else:
            # There are topics with the names of brokers and clusters.
            own = set(await self._names(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS))
            names = [topic for topic in found if topic not in own and not is_internal(topic)]
        return [topic for topic in names if pattern is None or re.fullmatch(pattern, topic)]

    async def _names(self, code: RequestCode) -> list[str]:
        answer = await self.patiently(
            "the list of topics", lambda: self._instance.cluster.ask_names(code)
        )
        return sorted(decode_answer(TopicList, answer.body).topic_list)

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the readable queues of a topic; empty if no name server knows the topic."""
        route = await self.patiently(f"the route of topic {topic}", lambda: self._route(topic))
        return () if route is None else route.read_queues

    async def _route(self, topic: str) -> TopicRoute | None:
        data = await self._instance.cluster.route_known(topic)
        if data is None:
            try:
                data = await self._instance.cluster.route(topic)
            except RemotingError as error:
                if error.code == ResponseCode.TOPIC_NOT_EXIST:
                    return None
                raise
        await self._instance.routes.load(topic)  # Calls find brokers by this route.
        return TopicRoute(topic, data)

    # Offsets

    async def spans(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, Interval | str]:
        """Return the first and the next queue offset of queues, or why they are not known."""
        asked = list(queues)
        found = await asyncio.gather(*map(self._span, asked))
        return dict(zip(asked, found, strict=True))

    async def _span(self, queue: MessageQueue) -> Interval | str:
        async with self._at_once:
            try:
                low = await self._ask(queue, lambda: self._calls.start_of(queue))
                high = await self._ask(queue, lambda: self._calls.end_of(queue))
            except ClientError as error:
                return str(error)
        return max(0, low), max(0, low, high)

    async def marks(self, offsets: Mapping[MessageQueue, int]) -> dict[MessageQueue, Mark]:
        """Return the marks of the records at queue offsets, if brokers have them."""

        async def mark(queue: MessageQueue, offset: int) -> Mark | None:
            async with self._at_once:
                return await self.mark(queue, offset)

        found = await asyncio.gather(*(mark(*one) for one in offsets.items()))
        return {queue: one for queue, one in zip(offsets, found, strict=True) if one is not None}

    async def mark(self, queue: MessageQueue, offset: int) -> Mark | None:
        """Return the mark of the record at a queue offset, or None if the broker lacks it."""
        try:
            record = await self._record(queue, offset)
        except BrokerError:
            return None  # The queue no longer exists, which its reader reports.
        if record is None or record.queue_offset != offset:
            return None
        return Mark(record.physical_offset, record.store_timestamp)

    async def first_since(self, queue: MessageQueue, time: int, span: Interval) -> int:
        """Return the queue offset of the first message stored at a time (ms) or later.

        Brokers before 5.0 return the nearest message instead, so the search begins there.

        Args:
            span: the range of possible offsets; its end is returned without such a message.
        """
        low, high = span
        if low >= high:
            return high
        hint = await self._ask(queue, lambda: self._calls.offset_at(queue, time))
        hint = min(max(hint, low), high)
        step = 1
        if hint == high or await self._is_since(queue, hint, time):
            high = hint
            while high > low:
                probe = max(low, high - step)
                if not await self._is_since(queue, probe, time):
                    low = probe + 1
                    break
                high, step = probe, 2 * step
        else:
            low = hint + 1
            while low < high:
                probe = min(high - 1, low + step - 1)
                if await self._is_since(queue, probe, time):
                    high = probe
                    break
                low, step = probe + 1, 2 * step
        while low < high:
            middle = (low + high) // 2
            if await self._is_since(queue, middle, time):
                high = middle
            else:
                low = middle + 1
        return low

    async def _is_since(self, queue: MessageQueue, offset: int, time: int) -> bool:
        record = await self._record(queue, offset)
        return record is None or record.store_timestamp >= time

    async def _record(self, queue: MessageQueue, offset: int) -> ReceivedMessage | None:
        """Return the first record from a queue offset on, or None if the broker has none."""
        pulled = await self.pull(queue, offset, most=1)
        if pulled.status is not PullStatus.FOUND:
            return None
        try:
            found = decode_messages(pulled.data, queue.broker_name, ReceivedMessage)
        except FormatError:
            return None  # The record is damaged, which its reader reports.
        # An inner batch begins before the requested offset.
        return next((message for message in found if message.queue_offset >= offset), None)

    # Messages

    async def pull(
        self, queue: MessageQueue, offset: int, most: int, expression: str = ALL
    ) -> Pulled:
        """Return records of a queue from an offset on.

        Args:
            most: the maximum number of records.
            expression: the expression of tags.
        """
        header = PullHeader(
            consumer_group=NOBODY,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=most,
            sys_flag=HAS_SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=0,
            subscription=expression,
            expression_type="TAG",
            max_msg_bytes=_PULL_BYTES,
        )
        return await self._ask(queue, lambda: self._calls.pull(queue, header))

    async def _ask(self, queue: MessageQueue, ask: Callable[[], Awaitable[T]]) -> T:
        async def ask_or_reload() -> T:
            try:
                return await ask()
            except MqlakeError:
                # The broker may have another address by now.
                await self._instance.routes.load(queue.topic)
                raise

        return await self.patiently(name_of(queue), ask_or_reload)


def name_of(queue: MessageQueue) -> str:
    """Return the name of a queue in errors."""
    return f"topic {queue.topic}, broker {queue.broker_name}, queue {queue.queue_id}"


def queue_order(queue: MessageQueue) -> tuple[str, str, int]:
    """Return the sort key of queues."""
    return queue.topic, queue.broker_name, queue.queue_id
