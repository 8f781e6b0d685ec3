"""Remove from mappings what they no longer need (upstream: `TopicQueueMappingCleanService`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime

import msgspec

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import MqlakeError
from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem, TopicQueueMapping
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.static_topics import decode_mapped_topic
from mqlake.protocol.bodies.stats import TopicOffset, TopicStats
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import TopicNameHeader
from mqlake.protocol.logic_queues.mapping import (
    MAX_STRETCHES,
    Stretches,
    is_decided,
    leaders,
    logical_broker,
)
from mqlake.remoting.route import Route
from mqlake.store.bounds import delete_hours

INTERVAL = 300.0
"""Seconds between two checks."""
_PAUSE = 0.01
"""Seconds between two topics."""

_log = logging.getLogger(__name__)


class StaticTopicCleaning:
    """Cleans up the mappings every five minutes within the hours of `deleteWhen`."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime, self._mappings = state, runtime, state.static_topics
        self._task: asyncio.Task[None] | None = None
        runtime.repeating.every(INTERVAL, self._look)
        runtime.on_stop.append(self._stop)

    def routes(self) -> Sequence[Route]:
        """Return no handlers: no request is about this."""
        return ()

    def _look(self) -> None:
        if not len(self._mappings) or not (self._task is None or self._task.done()):
            return
        state, runtime = self._state, self._runtime
        now = datetime.fromtimestamp(state.store.clock.milliseconds() / 1000).astimezone()
        if now.hour in delete_hours(runtime.settings.delete_when):
            self._task = asyncio.get_running_loop().create_task(self.clean())

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def clean(self) -> None:
        """Clean up the mappings of all static topics; log what fails."""
        for name in list(self._mappings):
            for clean in (self._remove_empty_stretches, self._remove_led_elsewhere):
                try:
                    await clean(name)
                except MqlakeError as error:
                    _log.warning("static topic %s: not cleaned up: %s", name, error)
            await asyncio.sleep(_PAUSE)

    # Stretches whose messages were removed

    async def _remove_empty_stretches(self, name: str) -> None:
        """Remove the oldest stretch of each queue that this broker leads if it has no messages."""
        mapping = self._mappings.get(name)
        if mapping is None:
            return
        oldest = {
            queue_id: items[0]
            for queue_id, items in mapping.hosted_queues.items()
            if _may_lose_first(items, mapping.bname)
        }
        tables = {
            broker: await self._stats(name, broker)
            for broker in {item.bname for item in oldest.values()}
        }
        empty = {
            queue_id: mapping.hosted_queues[queue_id][1:]
            for queue_id, item in oldest.items()
            if _is_empty(tables[item.bname], name, item)
        }
        if empty:
            self._replace(mapping, {**mapping.hosted_queues, **empty}, "stretches without messages")

    async def _stats(self, name: str, broker: str) -> TopicStats | None:
        if broker == self._mappings.broker_name:
            return self._own_stats(name)
        header = TopicNameHeader(topic=name, lo=False, bname=broker)
        try:
            code = RequestCode.GET_TOPIC_STATS_INFO
            answer = await self._state.forwarder.ask(broker, code, header)
        except RemotingError as error:
            _log.warning("static topic %s: %s", name, error)
            return None
        return TopicStats.decode(answer.body) if answer.code == ResponseCode.SUCCESS else None

    def _own_stats(self, name: str) -> TopicStats:
        reads = self._state.store.reads
        queues = range(self._state.topics.queues(name))
        return TopicStats(
            {
                MessageQueue(name, self._mappings.broker_name, each): TopicOffset(
                    *reads.queue(name, each)
                )
                for each in queues
            }
        )

    # Queues that this broker led before their last leader

    async def _remove_led_elsewhere(self, name: str) -> None:
        """Remove queues for which this broker still has a leader before the present one.

        Readers ask the present leader, whose mapping has all stretches.
        """
        mapping = self._mappings.get(name)
        if mapping is None:
            return
        believed = {
            queue_id: items[-1].bname
            for queue_id, items in mapping.hosted_queues.items()
            if items and items[-1].bname != mapping.bname
        }
        route = await self._state.names.route(name) if believed else None
        if route is None or not route.topic_queue_mapping_by_broker:
            return
        routes, scope = route.topic_queue_mapping_by_broker, logical_broker(mapping.scope)
        present = leaders(routes, mapping.total_queues)
        past = {
            queue_id: present[scope, queue_id]
            for queue_id, broker in believed.items()
            if present.get((scope, queue_id), broker) not in (broker, mapping.bname)
        }
        details = {
            broker: await self._mapping_of(name, broker)
            for broker in set(past.values()) & routes.keys()
        }
        gone = {
            queue_id
            for queue_id, broker in past.items()
            if _leads(details.get(broker), mapping, broker, queue_id)
        }
        if gone:
            kept = {
                queue_id: items
                for queue_id, items in mapping.hosted_queues.items()
                if queue_id not in gone
            }
            self._replace(mapping, kept, "queues that another broker has moved on")

    async def _mapping_of(self, name: str, broker: str) -> TopicQueueMapping | None:
        header = TopicNameHeader(topic=name, lo=True, bname=broker)
        answer = await self._state.forwarder.ask(broker, RequestCode.GET_TOPIC_CONFIG, header)
        if answer.code != ResponseCode.SUCCESS:
            return None
        return decode_mapped_topic(answer.body).mapping

    def _replace(
        self, old: TopicQueueMapping, queues: dict[int, list[LogicQueueMappingItem]], what: str
    ) -> None:
        """Change a mapping, unless an administrator has changed it meanwhile."""
        if self._mappings.get(old.topic) is old:
            _log.info("static topic %s: removed %s", old.topic, what)
            self._mappings.put(msgspec.structs.replace(old, hosted_queues=queues))


def _may_lose_first(items: Stretches, broker: str) -> bool:
    """Return whether this broker leads a queue, and its second stretch has a first offset."""
    return len(items) > 1 and items[-1].bname == broker and is_decided(items[1])


def _is_empty(stats: TopicStats | None, name: str, item: LogicQueueMappingItem) -> bool:
    found = stats and stats.offset_table.get(MessageQueue(name, item.bname, item.queue_id))
    return bool(found) and (found.max_offset in (0, found.min_offset))


def _leads(
    found: TopicQueueMapping | None, own: TopicQueueMapping, broker: str, queue_id: int
) -> bool:
    """Return whether a broker's mapping, as new as this broker's, says that it leads a queue."""
    if found is None or found.bname != broker:
        return False
    if (found.total_queues, found.epoch) != (own.total_queues, own.epoch):
        return False
    items = found.hosted_queues.get(queue_id)
    return bool(items) and len(items) <= MAX_STRETCHES and items[-1].bname == broker
