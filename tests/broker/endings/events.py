"""The events of docs/what-ends.md. Each happens to one topic and one group, or to the broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.broker.endings.world import QUEUES, World

Happen = Callable[[World, str, str], Awaitable[None]]

TOPIC = "topic deleted and created again"
TOPIC_KILLED = "the same, then killed"
GROUP = "group deleted with its offsets and created again"
GROUP_ONLY = "group deleted without them and created again"
QUEUES_REDUCED = "queues reduced and raised again"
RESTART = "stopped and started"
KILL = "killed and started"
REVIVE_QUEUES = "`reviveQueueNum` lowered"
CLUSTER = "`brokerClusterName` changed"
ROLE = "master demoted and promoted again"
OLDER_LOG = "revive offsets past the end: an older log was restored"


async def _topic(world: World, topic: str, group: str) -> None:
    await world.delete_topic(topic)
    await world.create(topic, group)


async def _group(world: World, topic: str, group: str) -> None:
    await world.delete_group(group, clean_offset=True)
    await world.create(topic, group)


async def _group_only(world: World, topic: str, group: str) -> None:
    await world.delete_group(group, clean_offset=False)
    await world.create(topic, group)


async def _queues_reduced(world: World, topic: str, group: str) -> None:
    await world.create(topic, group, QUEUES - 1)
    await world.settle()
    await world.create(topic, group, QUEUES)


OF_TOPICS: dict[str, Happen] = {
    TOPIC: _topic,
    TOPIC_KILLED: _topic,
    GROUP: _group,
    GROUP_ONLY: _group_only,
    QUEUES_REDUCED: _queues_reduced,
}
"""Those that happen to each topic and group."""

OF_BROKERS: dict[str, Callable[[World], Awaitable[None]]] = {
    TOPIC_KILLED: World.kill,
    RESTART: World.restart,
    KILL: World.kill,
    REVIVE_QUEUES: lambda world: world.restart(reviveQueueNum=1),
    ROLE: World.demote_and_promote,
    OLDER_LOG: World.restore_older_log,
    CLUSTER: lambda world: world.restart(brokerClusterName="AnotherCluster"),
}
"""Those that happen to the broker, after those of the same name."""

EVENTS = tuple(dict.fromkeys((*OF_TOPICS, *OF_BROKERS)))
