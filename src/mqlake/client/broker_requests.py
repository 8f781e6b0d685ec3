"""What brokers request of a client (upstream: `ClientRemotingProcessor`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from mqlake.client.members import ClientMembers, ConsumerMember
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_messages
from mqlake.formats.properties import PGROUP
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import ConsumerHeader, ConsumerStatusHeader
from mqlake.protocol.headers.clients import ConsumerGroupHeader
from mqlake.protocol.headers.transactions import CheckTransactionHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Handler

_log = logging.getLogger(__name__)


class MemberRequests:
    """Serves the requests of brokers; each goes to the member that it concerns."""

    def __init__(self, members: ClientMembers) -> None:
        self._members = members

    def handlers(self) -> Mapping[int, Handler]:
        """Return a handler for each request code."""
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._ids_changed,
            RequestCode.CHECK_TRANSACTION_STATE: self._check,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._reset,
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._reply,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._running_info,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._queue_offsets,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume_directly,
        }

    def _ids_changed(self, _peer: Peer, command: Command) -> None:
        member = self._members.consumers.get(command.header(ConsumerGroupHeader).consumer_group)
        if member is not None:
            member.rebalance_soon()

    def _check(self, peer: Peer, command: Command) -> None:
        header = command.header(CheckTransactionHeader)
        found = decode_messages(command.body, header.broker_name or "", ReceivedMessage)
        half = found[0] if found else None
        group = half.properties.get(PGROUP) if half else None
        members = self._members.producers.get(group) if group else None
        if half is None or not members:
            _log.warning(
                "%s asks for a transaction of group %s, but this client has no producer of that "
                "group",
                peer.address,
                group,
            )
            return
        member = next((each for each in reversed(members) if each.can_check), members[-1])
        member.check(half, header, peer.address)

    def _reset(self, _peer: Peer, command: Command) -> None:
        member = self._members.consumers.get(command.fields.get("group", ""))
        if member is not None:
            member.reset_offsets(command)

    def _reply(self, _peer: Peer, command: Command) -> Command:
        producers = (member for members in self._members.producers.values() for member in members)
        if not any(member.take_reply(command) for member in producers):
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "nobody waits for this reply")
        return response(command)

    def _running_info(self, _peer: Peer, command: Command) -> Command:
        header = command.header(ConsumerHeader)
        member = self._consumer(header.consumer_group)
        return response(
            command, body=member.operator_answers.running_info(with_stacks=header.jstack_enable)
        )

    def _queue_offsets(self, _peer: Peer, command: Command) -> Command:
        header = command.header(ConsumerStatusHeader)
        return response(
            command, body=self._consumer(header.group).operator_answers.queue_offsets(header.topic)
        )

    async def _consume_directly(self, _peer: Peer, command: Command) -> Command:
        member = self._consumer(command.header(ConsumerHeader).consumer_group)
        return response(command, body=await member.operator_answers.consume_directly(command))

    def _consumer(self, group: str) -> ConsumerMember:
        member = self._members.consumers.get(group)
        if member is None:
            reason = f"this client has no consumer of group {group}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return member
