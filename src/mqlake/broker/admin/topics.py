"""Make, change, remove and list topics; say where their queues stand."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mqlake.broker import naming
from mqlake.broker.admin.attributes import TOPIC_ATTRIBUTES, changed, parse_changes
from mqlake.broker.parts import Parts
from mqlake.formats.config.topics import Topic
from mqlake.remoting.bodies.groups import TopicConfigs
from mqlake.remoting.bodies.message_queue import MessageQueue
from mqlake.remoting.bodies.route import TopicList
from mqlake.remoting.bodies.stats import TopicOffset, TopicStats
from mqlake.remoting.body import decode_body, encode_body
from mqlake.remoting.codes import RequestCode, ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import RemotingError
from mqlake.remoting.headers.admin import CreateTopicHeader, TopicCountHeader, TopicNameHeader
from mqlake.remoting.server import Handler

MOST_QUEUES = 65_535
"""Queues that a topic may have; more would make requests about all of them take too long."""


class TopicAdmin:
    """Answers requests about topics."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def handlers(self) -> Mapping[int, Handler]:
        """Return what answers each request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self._update,
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: self._update_list,
            RequestCode.DELETE_TOPIC_IN_BROKER: self._delete,
            RequestCode.GET_TOPIC_CONFIG: self._get,
            RequestCode.GET_ALL_TOPIC_CONFIG: self._get_all,
            RequestCode.GET_TOPIC_STATS_INFO: self._stats,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: self._system_topics,
        }

    def _update(self, _peer: Peer, request: Command) -> Command:
        header = request.header(CreateTopicHeader)
        topic = Topic(
            topic_name=header.topic,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            perm=header.perm,
            topic_filter_type=header.topic_filter_type,
            topic_sys_flag=header.topic_sys_flag or 0,
            order=header.order,
        )
        self._put(topic, parse_changes(header.attributes))
        return response(request)

    def _update_list(self, _peer: Peer, request: Command) -> Command:
        topics = decode_body(TopicConfigs, request.body).topic_config_list
        for topic in topics:
            self._check(topic)
        for topic in topics:
            self._put(msgspec.structs.replace(topic, attributes={}), topic.attributes)
        return response(request)

    def _put(self, topic: Topic, changes: Mapping[str, str]) -> None:
        self._check(topic)
        old = self._parts.topics.get(topic.topic_name)
        attributes = changed(old.attributes if old else {}, changes, TOPIC_ATTRIBUTES)
        self._parts.topics.put(msgspec.structs.replace(topic, attributes=attributes))

    def _check(self, topic: Topic) -> None:
        name = topic.topic_name
        fault = naming.topic_fault(name)
        if fault is not None:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, fault)
        self._refuse_system(name)
        for queues in (topic.read_queue_nums, topic.write_queue_nums):
            if not 0 <= queues <= MOST_QUEUES:
                reason = f"the topic[{name}] cannot have {queues} queues"
                raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)

    def _refuse_system(self, name: str) -> None:
        is_checked = self._parts.settings.validate_system_topic_when_update_topic
        if is_checked and self._parts.topics.is_system(name):
            reason = f"The topic[{name}] is conflict with system topic."
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)

    async def _delete(self, _peer: Peer, request: Command) -> Command:
        name = request.header(TopicNameHeader).topic
        if not name.strip():
            raise RemotingError(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
        self._refuse_system(name)
        names = [name]
        if self._parts.settings.clear_retry_topic_when_delete_topic:
            groups = self._parts.store.core.config.consumer_offsets.groups_of(name)
            retries = (retry for group in groups for retry in _pop_retry_topics(name, group))
            names += [retry for retry in retries if retry in self._parts.topics]
        for each in names:
            self._parts.topics.remove(each)
            await self._parts.store.remove_topic(each)
        return response(request)

    def _get(self, _peer: Peer, request: Command) -> Command:
        return response(request, body=encode_body(self._topic(request)))

    def _topic(self, request: Command) -> Topic:
        name = request.header(TopicNameHeader).topic
        found = self._parts.topics.get(name)
        if found is None:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        return found

    def _get_all(self, _peer: Peer, request: Command) -> Command:
        topics = self._parts.topics
        table = {name: topics.get(name) for name in topics}
        body = {"topicConfigTable": table, "dataVersion": topics.version}
        header = TopicCountHeader(total_topic_num=len(table))
        return response(request, header=header, body=encode_body(body))

    def _stats(self, _peer: Peer, request: Command) -> Command:
        topic = self._topic(request)
        name, broker = topic.topic_name, self._parts.settings.broker_name
        queues = range(max(topic.read_queue_nums, topic.write_queue_nums))
        table = {MessageQueue(name, broker, each): self._offsets(name, each) for each in queues}
        stats = TopicStats(table, self._parts.stats.put_tps(name))
        return response(request, body=stats.encode())

    def _offsets(self, topic: str, queue_id: int) -> TopicOffset:
        reads = self._parts.store.core.reads
        low, high = reads.queue(topic, queue_id)
        last = reads.head_from(topic, queue_id, high - 1) if high > low else None
        return TopicOffset(low, high, last.store_timestamp if last else 0)

    def _system_topics(self, _peer: Peer, request: Command) -> Command:
        names = [name for name in self._parts.topics if self._parts.topics.is_system(name)]
        return response(request, body=encode_body(TopicList(names)))


def _pop_retry_topics(topic: str, group: str) -> tuple[str, str]:
    """Return the topics of popped messages that come again, in either form of their name."""
    retry = naming.retry_topic(group)
    return f"{retry}_{topic}", f"{retry}+{topic}"
