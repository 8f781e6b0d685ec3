"""Offsets that pulls commit."""

from __future__ import annotations

from typing import NamedTuple

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.offsets.past_end import GroupQueue
from mqlake.broker.state.offsets.resets import awaits_reset
from mqlake.protocol.headers.pull import PullHeader


class GroupTopic(NamedTuple):
    """A topic as a group consumes it."""

    group: str
    topic: str


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

    def note(self, pulls: GroupTopic, queue_id: int, offset: int | None, following: int) -> None:
        """Commit the offset of a pull that awaits no reset, if it brings one, and note how far it
        has pulled, for each if that is possible.

        Args:
            following: the queue offset after the messages that answer it.
        """
        group, topic = pulls.group, pulls.topic
        offsets, state, room = self._offsets, self._state, self._state.offset_room
        has_both = room.has_room(group, 2)
        # An offset up to that of messages that exist is never refused.
        if offset is not None and offset > following:
            refuses = state.past_end.refuses(GroupQueue(group, topic, queue_id), offset)
            offset = None if refuses else offset
        if offset is not None and (
            has_both or room.has_room(group) or offsets.has(group, topic, queue_id)
        ):
            offsets.commit(group, topic, queue_id, offset)
        if has_both or room.has_room(group) or offsets.has_pull(group, topic, queue_id):
            offsets.commit_pull(group, topic, queue_id, following)
