"""Searches that always end, and say where they stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from mqlake.admin import messages, topics
from mqlake.admin.admin import Admin
from mqlake.admin.each_broker import BrokerFailure, read_each
from mqlake.admin.topics import QueueStatus
from mqlake.client.cluster import MASTER, MasterBroker
from mqlake.console.cluster.view import ClusterView
from mqlake.console.page_error import PageError
from mqlake.errors import FormatError, MqlakeError
from mqlake.formats.message_id import decode_message_id
from mqlake.formats.record import Record
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.offsets import OffsetHeader, SearchOffsetHeader
from mqlake.protocol.headers.query import QueryMessageHeader

SECONDS: Final = 5.0
"""How long a search may take."""
MOST: Final = 200
"""Messages that a page shows."""
_AT_ONCE: Final = 8
_QUEUES: Final = 256
"""Queues that a search looks at."""
_KEY_LIMIT: Final = 64
"""The smallest number of messages of a key at which brokers stop."""
_START: Final = 2048
_TAIL_QUEUES: Final = 16
_PULL: Final = 32


class FoundMessage(NamedTuple):
    """A message, and the name of the broker that has it."""

    broker: str
    record: Record


def light(record: Record) -> Record:
    """Return a message with the begin of its body only, so that many need little memory."""
    return msgspec.structs.replace(record, body=record.body[:_START])


class SearchResult(NamedTuple):
    """The result of a search.

    Attributes:
        found: by store time.
        complete: whether everything that was asked for was searched.
        stopped: sentences that say where the search ended.
        later: the store time from which to continue, milliseconds; None if there is no more, or
            if the search ended before it was complete up to some time.
        wider: whether all messages that were found have that time, so that more must be asked for.
    """

    found: list[FoundMessage]
    complete: bool
    stopped: list[str]
    later: int | None = None
    wider: bool = False


class _QueueMatches(NamedTuple):
    """What was found in a queue.

    Attributes:
        reached: the queue offset up to which it was searched.
        problem: why it was not searched to its end; empty if it was, or if enough was found.
        has_more: whether enough was found before the end.
    """

    found: list[FoundMessage]
    reached: int
    problem: str
    has_more: bool = False


class StoreTimes(NamedTuple):
    """Store times, in milliseconds; None for no limit."""

    begin: int | None
    end: int | None

    def has(self, at: int) -> bool:
        """Return whether a time is not after the range."""
        return self.end is None or at <= self.end


async def by_time(
    view: ClusterView,
    topic: str,
    tags: str,
    span: StoreTimes,
    most: int,
    now: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """Return the first messages of a topic in a range of store times, over all queues.

    Args:
        most: how many.
        now: returns seconds.
    """
    most = min(most, MOST)
    silent: list[BrokerFailure] = []
    queues = await topics.status(view.admin, topic, silent)
    chosen, left_out = queues[:_QUEUES], queues[_QUEUES:]
    brokers = await _brokers(view)
    deadline, slots = now() + SECONDS, asyncio.Semaphore(_AT_ONCE)

    async def one(queue: QueueStatus) -> _QueueMatches:
        async with slots:
            if queue.broker_name not in brokers:
                return _QueueMatches([], queue.min_offset, f"{queue.broker_name} has no master")
            search = _QueueSearch(view.admin, brokers[queue.broker_name], topic, queue)
            return await search.run(tags, span, most, deadline - now())

    results = await asyncio.gather(*(one(queue) for queue in chosen))
    stopped = [each.missing("its queues were not searched") for each in silent]
    stopped += [
        f"Queue {queue.queue_id} on {queue.broker_name}: searched up to offset"
        f" {each.reached:,}: {each.problem}."
        for queue, each in zip(chosen, results, strict=True)
        if each.problem and len(each.found) < most
    ]
    if left_out:
        stopped.append(f"{len(left_out):,} more queues were not searched.")
    merged = _merged(results, most, stopped)
    return merged._replace(later=None) if stopped else merged


def _merged(results: list[_QueueMatches], most: int, stopped: list[str]) -> SearchResult:
    """Return the first messages of all queues. Each queue has contributed its first ones."""
    found = sorted((each for result in results for each in result.found), key=_stored)
    shown = found[:most]
    has_more = len(found) > most or any(each.has_more or each.problem for each in results)
    later, wider = None, False
    if has_more and shown:
        first, later = shown[0].record.store_timestamp, shown[-1].record.store_timestamp
        wider = first == later
        if wider and most >= MOST:
            stopped = ["More messages have this millisecond: look by queue offset.", *stopped]
            later += 1
        stopped = [f"Stopped after {len(shown):,} messages; there may be later ones.", *stopped]
    return SearchResult(shown, not stopped, stopped, later, wider)


def _stored(found: FoundMessage) -> tuple[int, str, int]:
    """Return by what messages are sorted: store time, then the order in the log of a broker."""
    return (found.record.store_timestamp, found.broker, found.record.physical_offset)


class _QueueSearch:
    """A search in one queue.

    Args:
        status: its offsets.
    """

    def __init__(self, admin: Admin, broker: MasterBroker, topic: str, status: QueueStatus) -> None:
        self._admin, self._broker, self._topic, self._status = admin, broker, topic, status
        self._found: list[FoundMessage] = []
        self._reached = status.min_offset
        self._has_more = False

    async def run(self, tags: str, span: StoreTimes, most: int, seconds: float) -> _QueueMatches:
        """Return the first messages of the queue; those that are found in time."""
        problem = ""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._search(tags, span, most)
        except TimeoutError:
            problem = f"the {SECONDS:.0f} seconds of a search were over"
        except MqlakeError as error:
            problem = str(error)
        return _QueueMatches(self._found, self._reached, problem, self._has_more)

    async def _search(self, tags: str, span: StoreTimes, most: int) -> None:
        at: int | None = await self._first(span.begin)
        while at is not None and at < self._status.max_offset and len(self._found) < most:
            self._reached = at
            records, at = await messages.pull(
                self._admin, self._broker, self._topic, self._status.queue_id, at, _PULL, tags=tags
            )
            for record in records:
                if not span.has(record.store_timestamp):
                    self._reached = record.queue_offset
                    return
                self._found.append(FoundMessage(self._broker.name, light(record)))
        self._reached = at or self._reached
        is_full = len(self._found) >= most
        self._has_more = is_full and at is not None and at < self._status.max_offset

    async def _first(self, begin: int | None) -> int:
        if begin is None:
            return self._status.min_offset
        header = SearchOffsetHeader(
            topic=self._topic, queue_id=self._status.queue_id, timestamp=begin
        )
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        answer = await self._admin.ask(self._broker.address, code, header)
        return max(self._status.min_offset, answer.header(OffsetHeader).offset)


async def _brokers(view: ClusterView) -> dict[str, MasterBroker]:
    return {
        data.broker_name: MasterBroker(data.broker_name, data.cluster, data.broker_addrs[MASTER])
        for data in await view.brokers()
        if MASTER in data.broker_addrs
    }


async def by_key(
    view: ClusterView, topic: str, key: str, span: StoreTimes, most: int, index_type: str
) -> SearchResult:
    """Return the messages of a topic with a key.

    Args:
        index_type: "K" for a key, "U" for a unique key, "T" for a tag.
    """
    header = QueryMessageHeader(
        topic=topic,
        key=key,
        max_num=min(most, MOST),
        begin_timestamp=span.begin or 0,
        end_timestamp=2**63 - 1 if span.end is None else span.end,
        index_type=index_type,
        is_unique_key=index_type == "U",
    )
    found: list[FoundMessage] = []
    stopped: list[str] = []
    silent: list[BrokerFailure] = []

    async def ask(broker: MasterBroker) -> tuple[MasterBroker, list[Record]]:
        return broker, await messages.keyed(view.admin, broker.address, header)

    for broker, records in await read_each(await view.admin.brokers_of(topic), ask, silent):
        found += [FoundMessage(broker.name, light(each)) for each in records]
        if len(records) >= min(_KEY_LIMIT, most):
            stopped.append(
                f"{broker.name} returned {len(records)} messages, which may be its limit: there may"
                " be more. Choose a range of times."
            )
    stopped += [each.missing("its messages were not searched") for each in silent]
    found.sort(key=_stored)
    return SearchResult(found, not stopped, stopped)


async def by_id(view: ClusterView, message_id: str) -> FoundMessage:
    """Return the message with an offset message id.

    The id contains the address of a broker: only brokers that are registered are asked, since
    requests contain the user's signature.

    Raises:
        PageError: the id is wrong, or names another address.
    """
    try:
        address, _ = decode_message_id(message_id)
    except FormatError as error:
        raise PageError(f"{message_id[:100]!r} is not an offset message id: {error}") from None
    for data in await view.brokers():
        if address in data.broker_addrs.values():
            return FoundMessage(data.broker_name, await messages.by_id(view.admin, message_id))
    raise PageError(
        f"No broker is registered at {address}, which this message id names",
        "The broker may have moved. Look for the message by its unique key.",
        404,
    )


async def by_offset(
    view: ClusterView, topic: str, broker: str, queue_id: int, offset: int, most: int
) -> SearchResult:
    """Return messages of one queue from an offset on."""
    master = (await _brokers(view)).get(broker)
    if master is None:
        raise MqlakeError(f"broker {broker!r} is not registered, or has no master")
    records = await messages.read(view.admin, master, topic, queue_id, offset, min(most, MOST))
    found = [FoundMessage(broker, light(each)) for each in records]
    if len(found) < most:
        return SearchResult(found, True, ["This is the end of the queue."] if found else [])
    last = found[-1].record.queue_offset
    return SearchResult(found, False, [f"Stopped at queue offset {last:,}."])


async def tail(view: ClusterView, topic: str, tags: str, most: int) -> SearchResult:
    """Return the newest messages of a topic, newest first."""
    silent: list[BrokerFailure] = []
    queues = [each for each in await topics.status(view.admin, topic, silent) if each.max_offset]
    queues.sort(key=lambda each: -each.last_updated)
    chosen = queues[:_TAIL_QUEUES]
    brokers = await _brokers(view)

    async def newest(queue: QueueStatus) -> list[FoundMessage]:
        broker = brokers.get(queue.broker_name)
        if broker is None:
            return []
        start = max(queue.min_offset, queue.max_offset - _PULL)
        try:
            records, _ = await messages.pull(
                view.admin, broker, topic, queue.queue_id, start, _PULL, tags=tags
            )
        except MqlakeError as error:
            silent.append(BrokerFailure(broker.name, error))
            return []
        return [FoundMessage(broker.name, light(each)) for each in records]

    lists = await asyncio.gather(*(newest(queue) for queue in chosen))
    found = sorted((each for one in lists for each in one), key=_stored, reverse=True)
    text = f"The newest messages of {len(chosen)} of {len(queues)} queues with messages."
    texts = [text, *dict.fromkeys(each.missing("its messages are missing") for each in silent)]
    return SearchResult(found[:most], len(chosen) == len(queues) and not silent, texts)
