"""The requests that register a broker's topics: all of them in one or more parts, or changed ones.

Upstream: `BrokerController.registerBrokerAll`, `registerIncrementBrokerData`,
`registerSingleTopicAll`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.static_topics import StaticTopics
from mqlake.broker.state.topics import READ_WRITE, BrokerTopics
from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.register import body_crc
from mqlake.protocol.bodies.route import QueueData, TopicRouteData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.namesrv import RegisterBrokerHeader, RegistrationPart, TopicHeader
from mqlake.remoting.slices import Job
from mqlake.replication.replicas import Replicas
from mqlake.store.live_settings import Current

LONGEST_PART: Final = 4 << 20
"""Bytes of topics after which a registration continues in another request. Name servers accept
requests of 16 MiB."""
_LEAST: Final = 2
"""Minimum topics of a first part: RocketMQ's name server refuses a single one of a new broker."""


class RegistrationRequest(NamedTuple):
    """One request of a registration.

    Attributes:
        topics: how many of the registration's topics this part and the earlier ones contain.
        is_last: whether no part follows.
    """

    request: Command
    topics: int
    is_last: bool


class TopicRegistrations:
    """Encodes registrations, a bit at a time."""

    def __init__(
        self,
        settings: Current[BrokerSettings],
        topics: BrokerTopics,
        static_topics: StaticTopics,
        replicas: Replicas,
    ) -> None:
        self._settings, self._topics = settings, topics
        self._static_topics, self._replicas = static_topics, replicas

    def part(
        self, names: list[str], first: int, version: DataVersion, *, is_known: bool
    ) -> Job[RegistrationRequest]:
        """Return the next part of the registration of all topics.

        Args:
            names: the names of all topics.
            first: the number of topics in earlier parts.
            version: of the topics.
            is_known: whether the name server has this version. If so, it only completes what it
                lacks, and topics stay without a permission that an administrator has revoked there.
        """
        settings = self._settings.now
        most = settings.split_registration_size if settings.enable_split_registration else None
        topics: list[bytes] = []
        mappings: list[bytes] = []
        size, at = 0, first
        while at < len(names):
            is_long = size >= LONGEST_PART or len(topics) == most
            if is_long and len(topics) >= _LEAST:
                break
            size += self._add(names[at], topics, mappings)
            at += 1
            yield
        is_last = at == len(names)
        if not is_last and not is_known:
            # A name server takes changed topics of another version only.
            version = msgspec.structs.replace(version, counter=-at)
        if not first:
            stage = None if is_last else RegistrationPart.FIRST
        else:
            stage = RegistrationPart.LAST if is_last else RegistrationPart.NEXT
        body = self._body(topics, mappings, version)
        yield
        return RegistrationRequest(self._request(body, stage), at, is_last)

    def changes(self, names: Iterable[str], version: DataVersion) -> Job[Command]:
        """Return one registration of changed topics only."""
        topics: list[bytes] = []
        mappings: list[bytes] = []
        for name in names:
            self._add(name, topics, mappings)
            yield
        body = self._body(topics, mappings, version)
        return self._request(body, RegistrationPart.CHANGES)

    def single(self, name: str) -> Command | None:
        """Return a request that registers one topic only; None if the topic does not exist."""
        topic = self._allowed(name)
        if topic is None:
            return None
        queues = QueueData(
            self._settings.now.broker_name,
            topic.read_queue_nums,
            topic.write_queue_nums,
            topic.perm,
            topic.topic_sys_flag,
        )
        body = encode_body(TopicRouteData([queues]))
        return request(RequestCode.REGISTER_TOPIC_IN_NAMESRV, TopicHeader(topic=name), body)

    def _add(self, name: str, topics: list[bytes], mappings: list[bytes]) -> int:
        """Add the texts of a topic that exists; return their length in bytes."""
        topic = self._allowed(name)
        if topic is None:
            return 0
        key = encode_body(name) + b":"
        topics.append(key + encode_body(topic))
        size = len(topics[-1])
        if (mapping := self._static_topics.registered(name)) is not None:
            mappings.append(key + encode_body(mapping))
            size += len(mappings[-1])
        return size

    def _allowed(self, name: str) -> Topic | None:
        """Return a topic as clients may use it: with no more than `brokerPermission`."""
        topic, allowed = self._topics.get(name), self._settings.now.broker_permission
        if topic is None or allowed & READ_WRITE == READ_WRITE:
            return topic
        return msgspec.structs.replace(topic, perm=topic.perm & allowed)

    def _body(self, topics: list[bytes], mappings: list[bytes], version: DataVersion) -> bytes:
        """Return a `RegisterBody` with the texts of its entries."""
        return b"".join(
            (
                b'{"topicConfigSerializeWrapper":{"topicConfigTable":{',
                b",".join(topics),
                b'},"dataVersion":',
                encode_body(version),
                b',"topicQueueMappingInfoMap":{',
                b",".join(mappings),
                b'},"mappingDataVersion":',
                encode_body(self._static_topics.version),
                b'},"filterServerList":[]}',
            )
        )

    def _request(self, body: bytes, stage: RegistrationPart | None) -> Command:
        settings = self._settings.now
        acts = settings.has_acting_master
        header = RegisterBrokerHeader(
            broker_name=settings.broker_name,
            broker_addr=settings.broker_address,
            cluster_name=settings.broker_cluster_name,
            # Not None: Java's name server refuses that. A slave connects to no empty address.
            ha_server_addr=self._replicas.ha_address,
            broker_id=settings.broker_id,
            heartbeat_timeout_millis=settings.broker_not_active_timeout_millis if acts else None,
            enable_acting_master=acts,
            body_crc32=body_crc(body),
            registration_part=stage,
        )
        return request(RequestCode.REGISTER_BROKER, header, body)
