"""Create, change, delete and list consumer groups."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from mqlake.broker.admin.attributes import GROUP_ATTRIBUTES, changed
from mqlake.broker.admin.kept import once_ended, once_kept
from mqlake.broker.admin.pages import LONGEST, page
from mqlake.broker.admin.removal import pop_retry_topics, remove_topic
from mqlake.broker.bodies import admin_body
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ
from mqlake.protocol import naming
from mqlake.protocol.bodies.groups import (
    GroupConfigs,
    GroupForbidden,
    GroupNames,
    encode_group,
    join_groups,
)
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import (
    DeleteGroupHeader,
    GroupCountHeader,
    GroupForbiddenHeader,
    GroupNameHeader,
)
from mqlake.protocol.headers.slaves import AllGroupsHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.members import Members
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job


class GroupAdmin:
    """Answers requests about consumer groups."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, self._update, Permission.CREATE),
            Route(
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
                self._update_list,
                Permission.CREATE,
            ),
            Route(RequestCode.DELETE_SUBSCRIPTIONGROUP, self._delete, Permission.DELETE),
            Route(RequestCode.DELETE_SUBSCRIPTION_GROUP_LIST, self._delete_list, Permission.DELETE),
            Route(
                RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN,
                self._forbid,
                Permission.UPDATE,
                GroupForbiddenHeader,
            ),
            Route(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, self._get, Permission.READ),
            Route(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, self._get_all, Permission.LIST),
        )

    async def _update(self, _peer: Peer, request: Command) -> Answer:
        asked = admin_body(SubscriptionGroup, request, self._runtime.settings)
        with self._state.creation_times.of_group(asked.group_name):
            group = self._with_changes(asked)
            self._check(group)
            self._state.groups.put(group)
            return await self._once_kept(response(request))

    async def _update_list(self, peer: Peer, request: Command) -> Answer:
        slices, size = self._runtime.slices, len(request.body)
        with self._state.creation_times.of_group():
            return await self._once_kept(
                slices.serve(peer, self._put_all(request), size=size, is_kept=True)
            )

    def _once_kept(
        self, answer: Answer | Coroutine[Any, Any, Answer]
    ) -> Coroutine[Any, Any, Answer]:
        return once_kept(self._state, self._state.store.config.groups, answer)

    def _put_all(self, request: Command) -> Job[Command]:
        yield  # Decoding a long body is one step.
        groups = admin_body(GroupConfigs, request, self._runtime.settings).group_config_list
        yield
        for group in groups:
            self._check(self._with_changes(group))
            yield
        for group in groups:
            self._state.groups.check_room(group.group_name)
            self._state.groups.put(self._with_changes(group))
            yield
        return response(request)

    def _with_changes(self, group: SubscriptionGroup) -> SubscriptionGroup:
        """Return a group whose attributes are its current ones with the requested changes."""
        old = self._state.groups.get(group.group_name)
        attributes = changed(old.attributes if old else {}, group.attributes, GROUP_ATTRIBUTES)
        return msgspec.structs.replace(group, attributes=attributes, created_by_admin=True)

    def _check(self, group: SubscriptionGroup) -> None:
        """Refuse a group with an invalid name or configuration."""
        name, settings = group.group_name, self._runtime.settings
        fault = naming.group_fault(name)
        if fault is not None:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, fault)
        most = settings.max_topic_queue_nums
        if not 0 <= group.retry_queue_nums <= most:
            reason = (
                f"group[{name}] cannot have retryQueueNums {group.retry_queue_nums}; allowed "
                f"are 0 to {most} (maxTopicQueueNums)"
            )
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        size, most = len(encode_body(group)), settings.max_group_config_size
        if size > most:
            reason = (
                f"group[{name}] has a configuration of {size} bytes; the maximum is {most} "
                "(maxGroupConfigSize)"
            )
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        self._state.groups.check_room(name)

    async def _delete(self, peer: Peer, request: Command) -> Answer:
        header = request.header(DeleteGroupHeader)
        clean = header.clean_offset
        return await self._remove(peer, request, [header.group_name], clean_offset=clean)

    async def _delete_list(self, peer: Peer, request: Command) -> Answer:
        body = admin_body(GroupNames, request, self._runtime.settings)
        names = body.group_name_list
        if not names:
            reason = "The specified group name list is blank."
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        if not all(name.strip() for name in names):
            raise RemotingError(
                ResponseCode.INVALID_PARAMETER, "The specified group name is blank."
            )
        return await self._remove(peer, request, names, clean_offset=body.clean_offset)

    async def _remove(
        self, peer: Peer, request: Command, names: Sequence[str], *, clean_offset: bool
    ) -> Answer:
        """Remove groups, and with their offsets everything that belongs to them."""
        store, retries = self._state.store, list[str]()
        job = self._remove_all(names, retries, clean_offset=clean_offset)
        removed = self._runtime.slices.serve(peer, job, size=len(request.body), is_kept=True)
        if removed is not None:
            await removed
        for each in dict.fromkeys(retries):
            await remove_topic(self._state, self._runtime, each)
        if clean_offset:
            for table in (store.incarnations, store.config.consumer_offsets, store.config.topics):
                await once_kept(self._state, table, None)
            await once_ended(self._state)
        return await self._once_kept(response(request))

    def _remove_all(
        self, names: Sequence[str], retries: list[str], *, clean_offset: bool
    ) -> Job[None]:
        """Remove groups; add their retry topics of popped messages to `retries`."""
        offsets = self._state.store.config.consumer_offsets
        for name in names:
            was_there = self._state.groups.remove(name) or offsets.has_any(name)
            self._state.empty_groups.deleted(name)
            if clean_offset:
                if was_there:
                    self._end(name)
                yield from self._state.endings.group_ended(name)
                topics = offsets.topics_of(name)
                pairs = ((topic, name) for topic in topics)
                found = yield from pop_retry_topics(self._state, pairs)
                retries += found.own
                for topic in topics - found.shared:
                    offsets.remove(name, topic)
                    yield
            yield

    def _end(self, name: str) -> None:
        """Mark the records of a group's state as dead.

        A group that does not exist is left out: deletions of arbitrary names would fill the table,
        which slaves get in one answer.
        """
        store = self._state.store
        store.incarnations.end_group(name, store.watermarks.end)

    async def _forbid(self, _peer: Peer, request: Command) -> Answer:
        """Set, and answer, whether a group may pull a topic."""
        header = request.header(GroupForbiddenHeader)
        groups, name, topic = self._state.groups, header.group, header.topic
        bits = groups.forbidden(name, topic)
        if header.readable is not None:
            bits = bits & ~PERM_READ if header.readable else bits | PERM_READ
            self._check_forbidden(name, topic, bits)
            groups.forbid(name, topic, bits)
        found = GroupForbidden(topic, name, not bits & PERM_READ)
        return await self._once_kept(response(request, body=encode_body(found), remark=""))

    def _check_forbidden(self, name: str, topic: str, bits: int) -> None:
        """Refuse to forbid something to a group, or of a topic, that does not exist."""
        if not bits:
            return
        if name not in self._state.groups:
            reason = f"subscription group [{name}] does not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        if topic not in self._state.topics:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        most = self._runtime.settings.max_answer_entries
        if not self._state.groups.forbidden(name, topic) and (
            self._state.groups.forbidden_count >= most
        ):
            reason = (
                f"group[{name}]: {most} topics are forbidden to groups already (maxAnswerEntries)"
            )
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    def _get(self, peer: Peer, request: Command) -> Command:
        # Upstream creates the group here: clients behind RocketMQ's proxy request it first of all.
        name = request.header(GroupNameHeader).group
        found = self._state.groups.get_or_make(name, peer.address)
        if found is None:
            reason = "No group in this broker"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        return response(request, body=encode_group(found))

    def _get_all(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        return self._runtime.slices.serve(peer, self._all(request))

    def _all(self, request: Command) -> Job[Command]:
        groups, version = self._state.groups, self._state.groups.version
        asked, total, members = request.header(AllGroupsHeader), len(groups), Members()
        names, is_whole = page(
            groups, asked.group_seq, asked.max_group_num, asked.data_version, version
        )
        for number, name in enumerate(names):
            if not is_whole and members.size >= LONGEST:
                names = names[:number]
                break
            if (group := groups.get(name)) is not None:
                members.append(encode_body(name) + b":" + encode_group(group))
            yield
        header = GroupCountHeader(total_group_num=len(members) if is_whole else total)
        table = groups.forbidden_table()
        forbidden = table if is_whole else {name: table[name] for name in names if name in table}
        body = join_groups(members, version, forbidden)
        yield
        return response(request, header=header, body=body)
