"""Offsets that pulls commit."""

from __future__ import annotations

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.offsets.past_end import GroupQueue
from mqlake.broker.state.offsets.resets import awaits_reset
from mqlake.protocol.headers.pull import PullHeader


class PullCommits:
    """Commits the offset in a pull. If the table is full, the pull is served nevertheless.

    The client gets the error when it commits separately, as it does every few seconds. A reset that
    the pull receives is not undone by it (RocketMQ's broker commits the older offset).
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._offsets = state.store.config.consumer_offsets

    def commit(self, header: PullHeader, queue_id: int, offset: int) -> None:
        """Commit an offset in a queue of a pull's topic, if that is possible."""
        group, topic = header.consumer_group, header.topic
        if awaits_reset(self._state, self._runtime, group, topic, queue_id):
            return
        if self._state.past_end.refuses(GroupQueue(group, topic, queue_id), offset):
            return
        if self._state.offset_room.has_room(group) or self._offsets.has(group, topic, queue_id):
            self._offsets.commit(group, topic, queue_id, offset)
