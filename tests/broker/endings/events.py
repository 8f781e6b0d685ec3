"""The events of docs/what-ends.md. Each happens to one topic and one group, or to the broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.broker.endings.scene import QUEUES, Scene
from tests.broker.endings.world import World

Happen = Callable[[Scene, str, str], Awaitable[None]]

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


async def _topic(scene: Scene, topic: str, group: str) -> None:
    await scene.delete_topic(topic)
    await scene.create(topic, group)


async def _group(scene: Scene, topic: str, group: str) -> None:
    await scene.delete_group(group, clean_offset=True)
    await scene.create(topic, group)


async def _group_only(scene: Scene, topic: str, group: str) -> None:
    await scene.delete_group(group, clean_offset=False)
    await scene.create(topic, group)


async def _queues_reduced(scene: Scene, topic: str, group: str) -> None:
    await scene.create(topic, group, QUEUES - 1)
    await scene.settle()
    await scene.create(topic, group, QUEUES)


OF_TOPICS: dict[str, Happen] = {
    TOPIC: _topic,
    TOPIC_KILLED: _topic,
    GROUP: _group,
    GROUP_ONLY: _group_only,
    QUEUES_REDUCED: _queues_reduced,
}
"""Those that happen to each topic and group."""

OF_BROKERS: dict[str, Callable[[Scene], Awaitable[None]]] = {
    TOPIC_KILLED: lambda scene: scene.kill(),
    RESTART: lambda scene: scene.restart(),
    KILL: lambda scene: scene.kill(),
    REVIVE_QUEUES: lambda scene: scene.restart(reviveQueueNum=1),
    CLUSTER: lambda scene: scene.restart(brokerClusterName="AnotherCluster"),
}
"""Those that happen to the broker, after those of the same name."""

IN_PROCESS: dict[str, Callable[[World], Awaitable[None]]] = {
    ROLE: World.demote_and_promote,
    OLDER_LOG: World.restore_older_log,
}
"""Those of brokers that no request and no restart brings about."""

EVENTS = (*OF_TOPICS, RESTART, KILL, REVIVE_QUEUES, ROLE, OLDER_LOG, CLUSTER)
