"""RESUME_CHECK_HALF_MESSAGE: check a half message again that was given up.

Upstream: `AdminBrokerProcessor.resumeCheckHalfMessage`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.answers import refusal
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import FormatError
from mqlake.formats.message_id import decode_message_id
from mqlake.formats.own_properties import CHECK_TIMES
from mqlake.formats.properties import PGROUP, REAL_TOPIC
from mqlake.formats.property_edits import edit
from mqlake.formats.topic_names import DISCARDED_TOPIC, HALF_TOPIC
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.transactions import ResumeCheckHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutStatus
from mqlake.store.stored import message_of, read_stored

_ERROR = ResponseCode.SYSTEM_ERROR


class ResumeChecks:
    """Checks half messages again whose producers never answered."""

    def __init__(self, state: BrokerState, _runtime: BrokerRuntime) -> None:
        self._store = state.store

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        code = RequestCode.RESUME_CHECK_HALF_MESSAGE
        return (Route(code, self._resume, Permission.UPDATE),)

    async def _resume(self, _peer: Peer, request: Command) -> Command:
        message = self._half(request.header(ResumeCheckHeader).msg_id or "")
        (result,) = await self._store.appends.confirm([self._store.appends.again(message)])
        if result.status is not PutStatus.PUT_OK:
            raise refusal(result)
        return response(request)

    def _half(self, message_id: str) -> Message:
        """Return the half message with an id, in its unchecked form.

        Raises:
            RemotingError: the message does not exist, or is of another kind.
        """
        try:
            _, offset = decode_message_id(message_id)
        except FormatError as error:
            raise RemotingError(_ERROR, f"msgId {message_id[:100]}: {error}") from None
        data = self._store.reads.raw_at(offset)
        stored = read_stored(data) if data is not None else None
        if stored is None:
            raise RemotingError(
                _ERROR, f"there is no message at offset {offset} of the log (msgId {message_id})"
            )
        record = stored.record
        is_half = record.topic in (DISCARDED_TOPIC, HALF_TOPIC)
        if not is_half or not {REAL_TOPIC, PGROUP} <= record.properties.keys():
            # Upstream puts any message there; committed, it would be lost.
            raise RemotingError(_ERROR, f"{record.topic}: the message is not a half message")
        topic = record.properties[REAL_TOPIC]
        if self._store.incarnations.was_deleted(topic, record.physical_offset):
            # The new record would come after the end of its topic.
            reason = f"topic[{topic}] was deleted after the message {message_id} was sent"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        properties = edit(stored.properties, add={CHECK_TIMES: "0"})
        return message_of(record, HALF_TOPIC, 0, properties, record.sys_flag)
