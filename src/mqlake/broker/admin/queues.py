"""Show the entries of a consume queue."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.bodies.stats import QueueEntries, QueueEntryData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import QueryConsumeQueueHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job

_MOST = 10_000
"""Maximum number of entries in one answer."""
_A_READ = 256


class QueueAdmin:
    """Answers requests about entries of queues."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (Route(RequestCode.QUERY_CONSUME_QUEUE, self._entries, Permission.READ),)

    def _entries(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        return self._runtime.slices.serve(peer, self._entries_of(request))

    def _entries_of(self, request: Command) -> Job[Command]:
        header = request.header(QueryConsumeQueueHeader)
        topic, queue_id, group = header.topic, header.queue_id, header.consumer_group
        low, high = self._state.store.reads.queue(topic, queue_id)
        known = self._state.topics.get(topic)
        queues = max(known.read_queue_nums, known.write_queue_nums) if known else 0
        if not 0 <= queue_id < queues:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
        body = QueueEntries(high, low, (yield from self._read(header, low, high)))
        if group is not None:
            members = self._state.clients.consumers.get(group)
            found = members.subscriptions.get(topic) if members else None
            if found is None:
                body.filter_data = f"{group}@{topic} is not online!"
            else:
                body.subscription_data, body.filter_data = found, "null"
        return response(request, body=encode_body(body))

    def _read(
        self, header: QueryConsumeQueueHeader, low: int, high: int
    ) -> Job[list[QueueEntryData]]:
        start = max(low, header.index)
        stop = min(high, start + min(max(header.count, 0), _MOST))
        reads, found = self._state.store.reads, list[QueueEntryData]()
        while start < stop:
            most = min(stop - start, _A_READ)
            entries = reads.entries(header.topic, header.queue_id, start, most)
            if not entries:
                break
            for entry in entries:
                found.append(QueueEntryData(entry.physical_offset, entry.size, entry.tags_code))
                yield
            start += len(entries)
        return found
