"""RECALL_MESSAGE (upstream: `RecallMessageProcessor`).

A producer recalls a message that waits for its time: a recall message is put into the timer's slot
of the first, and the two end there together.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.answers import STORED, refusal
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import PERM_WRITE
from mqlake.formats.properties import CANCEL, DELIVER_MS, PGROUP, TAGS, UNIQ_KEY, encode_pairs
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.recall import RecallHandle, parse_recall_handle
from mqlake.protocol.headers.recall import RecallAnswerHeader, RecallHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.store.append.message import Message

_TAG = "_RECALL_TAG_"
_BODY = b"0"


class Recalls:
    """Recalls delayed messages."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (Route(RequestCode.RECALL_MESSAGE, self._recall, Permission.PUBLISH),)

    async def _recall(self, peer: Peer, asked: Command) -> Command:
        header = asked.header(RecallHeader)
        region = self._runtime.settings.region_id
        try:
            return await self._recalled(peer, asked, header, region)
        except (
            RemotingError
        ) as refused:  # Clients trace a failed recall, too, if there is a region.
            fields = RecallAnswerHeader(region=region)
            return response(asked, refused.code, fields, remark=refused.remark)

    async def _recalled(
        self, peer: Peer, asked: Command, header: RecallHeader, region: str
    ) -> Command:
        self._check_settings()
        handle = parse_recall_handle(header.recall_handle)
        self._check(header.topic, handle)
        store, now = self._state.store, self._now()
        pairs = {
            TAGS: _TAG,
            CANCEL: f"{handle.topic}+{handle.unique_key}",
            UNIQ_KEY: handle.unique_key,
            DELIVER_MS: str(handle.deliver_ms),
        }
        if header.producer_group:  # RocketMQ's proxy names no group, and no property is empty.
            pairs[PGROUP] = header.producer_group
        message = Message(
            topic=handle.topic,
            body=_BODY,
            born_timestamp=now,
            born_host=peer.address,
            encoded_properties=encode_pairs(pairs),
        )
        (result,) = await store.appends.confirm(store.appends.many([message]))
        if not result.count:
            raise refusal(result)
        code = STORED.get(result.status, ResponseCode.SUCCESS)
        fields = RecallAnswerHeader(msg_id=handle.unique_key, region=region)
        return response(asked, code, fields, remark=result.reason or None)

    def _check_settings(self) -> None:
        settings = self._runtime.settings
        if not settings.recall_message_enable:
            reason = "recall failed, operation is forbidden (recallMessageEnable is false)"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        is_writable = bool(settings.broker_permission & PERM_WRITE)
        if not is_writable and not settings.allow_recall_when_broker_not_writeable:
            raise _not_available("allowRecallWhenBrokerNotWriteable is false")
        if self._now() < settings.start_accept_send_request_time_stamp:
            raise _not_available("startAcceptSendRequestTimeStamp is not over")

    def _check(self, topic: str, handle: RecallHandle) -> None:
        if self._state.topics.get(topic) is None:
            reason = f"recall failed, the topic[{topic}] not exist"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        if topic != handle.topic:
            raise _illegal("topic not match")
        settings = self._runtime.settings
        if handle.broker_name != settings.broker_name:
            raise _illegal("broker service not available")
        left = handle.deliver_ms - self._now()
        if not 0 < left < settings.timer_max_delay_sec * 1000:
            raise _illegal("timestamp invalid")

    def _now(self) -> int:
        return self._state.store.clock.milliseconds()


def _illegal(why: str) -> RemotingError:
    return RemotingError(ResponseCode.ILLEGAL_OPERATION, f"recall failed, {why}")


def _not_available(why: str) -> RemotingError:
    reason = f"recall failed, broker service not available: {why}"
    return RemotingError(ResponseCode.SERVICE_NOT_AVAILABLE, reason)
