"""UPDATE_AND_CREATE_STATIC_TOPIC (upstream: `AdminBrokerProcessor.updateAndCreateStaticTopic`)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mqlake.broker.admin.kept import once_kept
from mqlake.broker.admin.topic_checks import check_topic
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.static_topics import decode_mapping
from mqlake.protocol.body import MAX_QUOTED, check_size
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.admin import CreateTopicHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route


class StaticTopicAdmin:
    """Creates and changes static topics."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        code = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
        return (Route(code, self._update, Permission.CREATE),)

    async def _update(self, _peer: Peer, request: Command) -> Answer:
        state, runtime, header = self._state, self._runtime, request.header(CreateTopicHeader)
        most = min(runtime.settings.max_admin_body_size, MAX_QUOTED)
        check_size(request, most, "maxAdminBodySize, and 1 MiB")
        topic = Topic(
            topic_name=header.topic,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            perm=header.perm,
            topic_filter_type=header.topic_filter_type,
            topic_sys_flag=header.topic_sys_flag or 0,
        )
        check_topic(state, runtime, topic)
        mapping = decode_mapping(request.body)
        if (old := state.topics.get(header.topic)) is not None:
            topic = msgspec.structs.replace(topic, attributes=old.attributes, order=old.order)
        force = header.force is True
        checked = state.static_topics.checked(mapping, header.topic, force=force)
        # The mapping comes first: without it, the topic's queues would be served like any others.
        state.static_topics.put(checked)
        state.topics.put(topic)
        state.topics.count_change()
        tables = state.store.config
        await once_kept(state, tables.static_topics, None)
        await once_kept(state, tables.topics, None)
        # Tools read the route next, and send by it.
        await state.names.told()
        return response(request)
