"""Create, change, delete and list topics; show the offsets of their queues."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from mqlake.broker.admin.attributes import TOPIC_ATTRIBUTES, changed, check_fixed
from mqlake.broker.admin.kept import once_ended, once_kept
from mqlake.broker.admin.pages import page
from mqlake.broker.admin.removal import pop_retry_topics, remove_topic
from mqlake.broker.admin.topic_checks import check_topic, refuse_system
from mqlake.broker.bodies import admin_body
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import Topic
from mqlake.formats.incarnations import EndedIncarnations
from mqlake.protocol.attributes import parse_changes
from mqlake.protocol.bodies.groups import TopicConfigList, TopicNames
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.queue_tables import encode_queue, encode_with_table, join_queues
from mqlake.protocol.bodies.route import TopicList
from mqlake.protocol.bodies.static_topics import mapped_topic
from mqlake.protocol.bodies.stats import TopicOffset
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import CreateTopicHeader, TopicCountHeader, TopicNameHeader
from mqlake.protocol.headers.slaves import AllTopicsHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.members import Members
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job

Later = Answer | Coroutine[Any, Any, Answer]
"""An answer, which is returned at once if it is short."""


class TopicAdmin:
    """Answers requests about topics."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.UPDATE_AND_CREATE_TOPIC, self._update, Permission.CREATE),
            Route(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, self._update_list, Permission.CREATE),
            Route(RequestCode.DELETE_TOPIC_IN_BROKER, self._delete, Permission.DELETE),
            Route(RequestCode.DELETE_TOPIC_IN_BROKER_LIST, self._delete_list, Permission.DELETE),
            Route(RequestCode.GET_TOPIC_CONFIG, self._get, Permission.READ),
            Route(RequestCode.GET_ALL_TOPIC_CONFIG, self._get_all, Permission.LIST),
            Route(RequestCode.GET_TOPIC_STATS_INFO, self._stats, Permission.READ),
            Route(
                RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, self._system_topics, Permission.LIST
            ),
        )

    async def _update(self, _peer: Peer, request: Command) -> Answer:
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
        is_system = self._state.topics.is_system(topic.topic_name)
        with self._state.creation_times.of_topic(is_system=is_system):
            self._put(topic, parse_changes(header.attributes))
            return await self._once_told(response(request))

    async def _update_list(self, peer: Peer, request: Command) -> Answer:
        slices, size = self._runtime.slices, len(request.body)
        with self._state.creation_times.of_topic(is_system=False):
            return await self._once_told(
                slices.serve(peer, self._put_all(request), size=size, is_kept=True)
            )

    async def _once_told(self, answer: Later) -> Answer:
        """Return an answer once the changes are durable, and registered as far as `told` waits.

        Whoever created a topic sends to it next, by its route (upstream:
        `BrokerController.registerIncrementBrokerData`, which waits as well).
        """
        found = await self._once_kept(answer)
        await self._state.names.told()
        return found

    def _once_kept(self, answer: Later) -> Coroutine[Any, Any, Answer]:
        return once_kept(self._state, self._state.store.config.topics, answer)

    def _put_all(self, request: Command) -> Job[Command]:
        yield  # Decoding a long body is one step.
        topics = admin_body(TopicConfigList, request, self._runtime.settings).topic_config_list
        yield
        for topic in topics:
            check_topic(self._state, self._runtime, topic)
            yield
        for topic in topics:
            self._put(msgspec.structs.replace(topic, attributes={}), topic.attributes)
            yield
        return response(request)

    def _put(self, topic: Topic, changes: Mapping[str, str]) -> None:
        check_topic(self._state, self._runtime, topic)
        old = self._state.topics.get(topic.topic_name)
        attributes = changed(old.attributes if old else {}, changes, TOPIC_ATTRIBUTES)
        if old is not None:
            check_fixed(old.attributes, attributes)
        self._state.topics.put(msgspec.structs.replace(topic, attributes=attributes))

    async def _delete(self, _peer: Peer, request: Command) -> Answer:
        name = request.header(TopicNameHeader).topic
        self._check_removable(name)
        await self._remove(name)
        return await self._once_removed(response(request))

    async def _delete_list(self, _peer: Peer, request: Command) -> Answer:
        names = admin_body(TopicNames, request, self._runtime.settings).topic_list
        if not names:
            reason = "The specified topic list is blank."
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        for name in names:
            self._check_removable(name)
        for name in dict.fromkeys(names):
            await self._remove(name)
        return await self._once_removed(response(request))

    def _check_removable(self, name: str) -> None:
        if not name.strip():
            raise RemotingError(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
        refuse_system(self._state, self._runtime, name)

    async def _remove(self, name: str) -> None:
        """Remove a topic and, if the settings say so, the retry topics of its popped messages."""
        names: list[str] = []
        if self._runtime.settings.clear_retry_topic_when_delete_topic:
            names = await self._runtime.slices.finish(self._retry_topics(name))
        # The topic comes last: if the disk refuses something, its offsets still name the groups
        # when the request is repeated.
        for each in [*names, name]:
            await remove_topic(self._state, self._runtime, each)

    def _retry_topics(self, name: str) -> Job[list[str]]:
        groups = self._state.store.config.consumer_offsets.groups_of(name)
        return (yield from pop_retry_topics(self._state, ((name, each) for each in groups))).own

    async def _once_removed(self, answer: Answer) -> Answer:
        """Return an answer once no crash can bring back what was removed.

        Offsets of a deleted topic would hide messages of one that is created with its name.
        """
        config = self._state.store.config
        for table in (config.static_topics, config.consumer_offsets):
            await once_kept(self._state, table, None)
        await once_ended(self._state)
        return await self._once_kept(answer)

    def _get(self, _peer: Peer, request: Command) -> Command:
        topic, mapping = self._topic(request), None
        if request.header(TopicNameHeader).lo:
            mapping = self._state.static_topics.get(topic.topic_name)
        return response(request, body=encode_body(mapped_topic(topic, mapping)))

    def _topic(self, request: Command) -> Topic:
        name = request.header(TopicNameHeader).topic
        found = self._state.topics.get(name)
        if found is None:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        return found

    def _get_all(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._all(request))

    def _all(self, request: Command) -> Job[Command]:
        topics, static_topics = self._state.topics, self._state.static_topics
        asked, version = request.header(AllTopicsHeader), encode_body(topics.version)
        total = len(topics)
        names, is_whole = page(
            topics, asked.topic_seq, asked.max_topic_num, asked.data_version, topics.version
        )
        members = Members()
        for name in names:
            if (topic := topics.get(name)) is not None:
                members.append(encode_body(name) + b":" + encode_body(topic))
            yield
        mappings = Members()
        for name in list(static_topics) if is_whole else names:
            if (mapping := static_topics.get(name)) is not None:
                mappings.append(encode_body(name) + b":" + encode_body(mapping))
            yield
        ended = b""
        if asked.incarnations and not asked.topic_seq:
            ended = yield from _encode_ended(self._state.store.incarnations.ended())
        body = b"".join(
            (
                b"{",
                ended,
                b'"topicConfigTable":{',
                b",".join(members),
                b'},"dataVersion":',
                version,
                b',"topicQueueMappingDetailMap":{',
                b",".join(mappings),
                b'},"mappingDataVersion":',
                encode_body(static_topics.version),
                b"}",
            )
        )
        yield
        # What was removed meanwhile has changed the version, too.
        total = len(members) if is_whole else total
        header = TopicCountHeader(total_topic_num=total)
        return response(request, header=header, body=body)

    def _stats(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._stats_of(request))

    def _stats_of(self, request: Command) -> Job[Command]:
        topic = self._topic(request)
        name, broker = topic.topic_name, self._runtime.settings.broker_name
        pairs = Members()
        for each in range(self._state.topics.queues(name)):
            pairs.append(encode_queue(MessageQueue(name, broker, each), self._offsets(name, each)))
            yield
        table = join_queues(pairs)
        put_tps = self._state.stats.put_tps(name)
        return response(
            request, body=encode_with_table({"offsetTable": table, "topicPutTps": put_tps})
        )

    def _offsets(self, topic: str, queue_id: int) -> TopicOffset:
        reads = self._state.store.reads
        low, high = reads.queue(topic, queue_id)
        last = reads.head_from(topic, queue_id, high - 1) if high > low else None
        return TopicOffset(low, high, last.store_timestamp if last else 0)

    def _system_topics(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._system_list(request))

    def _system_list(self, request: Command) -> Job[Command]:
        names = yield from self._state.topics.system_names()
        return response(request, body=encode_body(TopicList(names)))


def _encode_ended(found: EndedIncarnations) -> Job[bytes]:
    """Return the member with the deleted topics and groups: there may be many of them."""
    tables = {"topics": found.topics, "groups": found.groups, "deletions": found.deletions}
    parts = [b'"others":%d' % found.others]
    for name, table in tables.items():
        members = Members()
        for key, offset in table.items():
            members.append(b"%s:%d" % (encode_body(key), offset))
            yield
        parts.append(b'"%s":{%s}' % (name.encode(), b",".join(members)))
    return b'"incarnations":{%s},' % b",".join(parts)
