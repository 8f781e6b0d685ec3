"""Make, change, remove and list consumer groups."""

from __future__ import annotations

from collections.abc import Mapping

from mqlake.broker import naming
from mqlake.broker.parts import Parts
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.remoting.bodies.groups import (
    GroupConfigs,
    encode_group,
    encode_groups,
)
from mqlake.remoting.body import decode_body
from mqlake.remoting.codes import RequestCode, ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import RemotingError
from mqlake.remoting.headers.admin import DeleteGroupHeader, GroupCountHeader, GroupNameHeader
from mqlake.remoting.server import Handler


class GroupAdmin:
    """Answers requests about consumer groups."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def handlers(self) -> Mapping[int, Handler]:
        """Return what answers each request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self._update,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: self._update_list,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self._delete,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self._get,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self._get_all,
        }

    def _update(self, _peer: Peer, request: Command) -> Command:
        self._put([decode_body(SubscriptionGroup, request.body)])
        return response(request)

    def _update_list(self, _peer: Peer, request: Command) -> Command:
        self._put(decode_body(GroupConfigs, request.body).group_config_list)
        return response(request)

    def _put(self, groups: list[SubscriptionGroup]) -> None:
        for group in groups:
            fault = naming.group_fault(group.group_name)
            if fault is not None:
                raise RemotingError(ResponseCode.INVALID_PARAMETER, fault)
        for group in groups:
            self._parts.groups.put(group)

    def _delete(self, _peer: Peer, request: Command) -> Command:
        header = request.header(DeleteGroupHeader)
        self._parts.groups.remove(header.group_name)
        if header.clean_offset:
            self._parts.store.core.config.consumer_offsets.remove_group(header.group_name)
        return response(request)

    def _get(self, _peer: Peer, request: Command) -> Command:
        # Upstream creates the group here: clients behind RocketMQ's proxy ask for it first of all.
        found = self._parts.groups.get_or_make(request.header(GroupNameHeader).group)
        if found is None:
            reason = "No group in this broker"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        return response(request, body=encode_group(found))

    def _get_all(self, _peer: Peer, request: Command) -> Command:
        groups = self._parts.groups
        found = [group for name in groups if (group := groups.get(name)) is not None]
        header = GroupCountHeader(total_group_num=len(found))
        return response(request, header=header, body=encode_groups(found, groups.version))
