"""Searches that always end, and say where they stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from mqlake.admin import messages, topics
from mqlake.admin.admin import Admin
from mqlake.admin.topics import QueueStatus
from mqlake.client.cluster import MASTER, MasterBroker
from mqlake.console.cluster.view import ClusterView
from mqlake.errors import MqlakeError
from mqlake.formats.record import Record
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.offsets import OffsetHeader, SearchOffsetHeader

SECONDS: Final = 5.0
"""How long a search may take."""
MOST: Final = 200
"""Messages that a page shows."""
_AT_ONCE: Final = 8
_QUEUES: Final = 256
"""Queues that a search looks at."""
_KEY_LIMIT: Final = 64
"""The smallest number of messages of a key at which brokers stop."""
_TAIL_QUEUES: Final = 16
_PULL: Final = 32


class FoundMessage(NamedTuple):
    """A message, and the name of the broker that has it."""

    broker: str
    record: Record


class Searched(NamedTuple):
    """The result of a search.

    Attributes:
        found: by store time.
        complete: whether everything that was asked for was searched.
        stopped: sentences that say where the search ended.
        later: the store time from which to continue, milliseconds; None if there is no more.
    """

    found: list[FoundMessage]
    complete: bool
    stopped: list[str]
    later: int | None = None


class _QueueMatches(NamedTuple):
    found: list[FoundMessage]
    ended: bool
    reached: int


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
) -> Searched:
    """Return the first messages of a topic in a range of store times, over all queues.

    Args:
        most: how many.
        now: returns seconds.
    """
    most = min(most, MOST)
    queues = await topics.status(view.admin, topic)
    chosen, left_out = queues[:_QUEUES], queues[_QUEUES:]
    brokers = await _brokers(view)
    deadline, slots = now() + SECONDS, asyncio.Semaphore(_AT_ONCE)

    async def one(queue: QueueStatus) -> _QueueMatches | None:
        async with slots:
            if now() >= deadline or queue.broker_name not in brokers:
                return None
            queue_of = _SearchedQueue(view.admin, brokers[queue.broker_name], topic, queue)
            return await queue_of.search(tags, span, most, lambda: now() >= deadline)

    results = await asyncio.gather(*(one(queue) for queue in chosen))
    stopped = [_unsearched(queue) for queue, each in zip(chosen, results, strict=True) if not each]
    stopped += [
        f"Queue {queue.queue_id} on {queue.broker_name}: searched up to offset"
        f" {each.reached:,}; the {SECONDS:.0f} seconds of a search were over."
        for queue, each in zip(chosen, results, strict=True)
        if each and not each.ended and len(each.found) < most
    ]
    if left_out:
        stopped.append(f"{len(left_out):,} more queues were not searched.")
    return _merged([each for each in results if each], most, stopped)


def _unsearched(queue: QueueStatus) -> str:
    return (
        f"Queue {queue.queue_id} on {queue.broker_name} was not searched: the"
        f" {SECONDS:.0f} seconds of a search were over, or its broker has no master."
    )


def _merged(results: list[_QueueMatches], most: int, stopped: list[str]) -> Searched:
    """Return the first messages of all queues. Each queue has contributed its first ones."""
    found = sorted(
        (each for result in results for each in result.found),
        key=lambda each: (each.record.store_timestamp, each.broker, each.record.physical_offset),
    )
    shown = found[:most]
    has_more = len(found) > most or any(not each.ended for each in results)
    later: int | None = None
    if has_more and shown:
        first, last = shown[0].record.store_timestamp, shown[-1].record.store_timestamp
        later = last if last > first else last + 1
        stopped = [f"Stopped after {len(shown):,} messages; there may be later ones.", *stopped]
    return Searched(shown, not stopped, stopped, later)


class _SearchedQueue(NamedTuple):
    """A queue that is searched."""

    admin: Admin
    broker: MasterBroker
    topic: str
    status: QueueStatus

    async def search(
        self, tags: str, span: StoreTimes, most: int, is_over: Callable[[], bool]
    ) -> _QueueMatches:
        found: list[FoundMessage] = []
        at: int | None = await self._first(span.begin)
        reached = at or 0
        while at is not None and at < self.status.max_offset and len(found) < most:
            if is_over():
                return _QueueMatches(found, ended=False, reached=reached)
            reached = at
            records, at = await messages.pull(
                self.admin, self.broker, self.topic, self.status.queue_id, at, _PULL, tags=tags
            )
            for record in records:
                if not span.has(record.store_timestamp):
                    return _QueueMatches(found, ended=True, reached=record.queue_offset)
                found.append(FoundMessage(self.broker.name, record))
        is_full = len(found) >= most and at is not None and at < self.status.max_offset
        return _QueueMatches(found, not is_full, at or reached)

    async def _first(self, begin: int | None) -> int:
        if begin is None:
            return self.status.min_offset
        header = SearchOffsetHeader(
            topic=self.topic, queue_id=self.status.queue_id, timestamp=begin
        )
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        answer = await self.admin.ask(self.broker.address, code, header)
        return max(self.status.min_offset, answer.header(OffsetHeader).offset)


async def _brokers(view: ClusterView) -> dict[str, MasterBroker]:
    return {
        data.broker_name: MasterBroker(data.broker_name, data.cluster, data.broker_addrs[MASTER])
        for data in await view.brokers()
        if MASTER in data.broker_addrs
    }


async def by_key(
    view: ClusterView, topic: str, key: str, span: StoreTimes, most: int, index_type: str
) -> Searched:
    """Return the messages of a topic with a key.

    Args:
        index_type: "K" for a key, "U" for a unique key, "T" for a tag.
    """
    end = 2**63 - 1 if span.end is None else span.end
    records = await messages.by_key(
        view.admin, topic, key, min(most, MOST), span.begin or 0, end, index_type=index_type
    )
    names = {address: name for name, address in (await view.masters()).items()}
    found = [FoundMessage(names.get(each.store_host, ""), each) for each in records]
    if len(found) < _KEY_LIMIT and len(found) < most:
        return Searched(found, True, [])
    text = (
        f"A broker returns at most {_KEY_LIMIT} messages of a key: there may be more. Choose a"
        " range of times."
    )
    return Searched(found, False, [text])


async def by_offset(
    view: ClusterView, topic: str, broker: str, queue_id: int, offset: int, most: int
) -> Searched:
    """Return messages of one queue from an offset on."""
    master = (await _brokers(view)).get(broker)
    if master is None:
        raise MqlakeError(f"broker {broker!r} is not registered, or has no master")
    records = await messages.read(view.admin, master, topic, queue_id, offset, min(most, MOST))
    found = [FoundMessage(broker, each) for each in records]
    if len(found) < most:
        return Searched(found, True, ["This is the end of the queue."] if found else [])
    last = found[-1].record.queue_offset
    return Searched(found, False, [f"Stopped at queue offset {last:,}."])


async def tail(view: ClusterView, topic: str, tags: str, most: int) -> Searched:
    """Return the newest messages of a topic, newest first."""
    queues = [each for each in await topics.status(view.admin, topic) if each.max_offset]
    queues.sort(key=lambda each: -each.last_updated)
    chosen = queues[:_TAIL_QUEUES]
    brokers = await _brokers(view)

    async def newest(queue: QueueStatus) -> list[FoundMessage]:
        broker = brokers.get(queue.broker_name)
        if broker is None:
            return []
        start = max(queue.min_offset, queue.max_offset - _PULL)
        records, _ = await messages.pull(
            view.admin, broker, topic, queue.queue_id, start, _PULL, tags=tags
        )
        return [FoundMessage(broker.name, each) for each in records]

    lists = await asyncio.gather(*(newest(queue) for queue in chosen))
    found = sorted(
        (each for one in lists for each in one), key=lambda each: -each.record.store_timestamp
    )
    text = f"The newest messages of {len(chosen)} of {len(queues)} queues with messages."
    return Searched(found[:most], len(chosen) == len(queues), [text])
