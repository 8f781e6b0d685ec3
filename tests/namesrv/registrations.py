"""Registrations of brokers."""

from __future__ import annotations

from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import Topic
from mqlake.namesrv.broker_table import BrokerKey, Place
from mqlake.namesrv.routes import RegistrationContent
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs
from mqlake.protocol.bodies.route import TopicQueueMappingInfo

OTHERS = ("self-test", "retry")
"""A broker always has some topics of its own; one alone is refused at first."""


def place(address: str = "h:1", name: str = "a", broker_id: int = 0, cluster: str = "c") -> Place:
    return Place(BrokerKey(cluster, address), name, broker_id)


def registration(
    *topics: str | Topic,
    at: Place | None = None,
    version: int = 1,
    state: int = 0,
    acting: bool | None = False,
    connection: object = None,
    timeout: int | None = None,
    mappings: dict[str, TopicQueueMappingInfo] | None = None,
) -> RegistrationContent:
    made = [Topic(t, 4, 4) if isinstance(t, str) else t for t in (*topics, *OTHERS)]
    configs = TopicConfigs(
        {topic.topic_name: topic for topic in made}, DataVersion(version, state), mappings or {}
    )
    at = at or place()
    ha = f"ha-{at.key.address}"
    return RegistrationContent(at, ha, None, timeout, acting, RegisterBody(configs), connection)
