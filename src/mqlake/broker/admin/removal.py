"""Remove topics, and the retry topics of messages that groups have popped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.naming import RETRY_PREFIX
from mqlake.protocol.retry_topics import retry_topic
from mqlake.remoting.slices import Job


async def remove_topic(state: BrokerState, runtime: BrokerRuntime, name: str) -> None:
    """Remove a topic with everything that belongs to it.

    Raises:
        RemotingError: the topic is being deleted already.
        StoreError: the disk failed, or refused an operation; the same call completes it.
    """
    with state.topics.deleting(name):
        state.static_topics.remove(name)
        state.topics.remove(name)
        await runtime.slices.finish(state.endings.topic_ended(name))
        await state.store.removals.remove(name)


class RetryTopics(NamedTuple):
    """The existing retry topics of popped messages of some topics and groups.

    A retry topic whose name is also that of another group's stays: `%RETRY%g_a_t` is the one of
    group g for topic a_t, and of group g_a for topic t.

    Attributes:
        own: those that are to be removed.
        shared: those that stay; the groups have gone to their end.
    """

    own: list[str]
    shared: set[str]


def pop_retry_topics(state: BrokerState, pairs: Iterable[tuple[str, str]]) -> Job[RetryTopics]:
    """Find the retry topics of pairs of a topic and a group; let groups go to the end of shared
    ones.
    """
    found = RetryTopics([], set())
    for topic, group in pairs:
        for is_v2 in (False, True):
            name = retry_topic(topic, group, is_v2=is_v2)
            if name not in state.topics and not state.store.reads.queues(name):
                continue
            if _is_shared(state, name, group):
                _go_to_end(state, name, group)
                found.shared.add(name)
            else:
                found.own.append(name)
        yield
    return found


def _is_shared(state: BrokerState, name: str, group: str) -> bool:
    others = state.store.config.consumer_offsets.groups_of(name) - {group}
    return bool(others) or name.removeprefix(RETRY_PREFIX) in state.groups


def _go_to_end(state: BrokerState, name: str, group: str) -> None:
    offsets = state.store.config.consumer_offsets
    for queue_id in offsets.query_topic(group, name):
        end = state.store.reads.queue(name, queue_id).max_offset
        offsets.commit(group, name, queue_id, end)
