"""Requests about lite topics, each answered with one error (docs/lite-topics.md)."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.properties import LITE_TOPIC, decode_properties
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route

LITE_TOPIC_NAME = LITE_TOPIC.encode()
"""Present in the properties of every message to a lite topic."""

_REASON = (
    "this broker has no lite topics: use a topic with a tag or a property to filter by"
    " (docs/lite-topics.md)"
)
_CODES = {
    RequestCode.POP_LITE_MESSAGE: Permission.SUBSCRIBE,
    RequestCode.LITE_SUBSCRIPTION_CTL: Permission.SUBSCRIBE,
    RequestCode.ACK_LITE_MESSAGE: Permission.SUBSCRIBE,
    RequestCode.NOTIFY_UNSUBSCRIBE_LITE: Permission.SUBSCRIBE,
    RequestCode.GET_BROKER_LITE_INFO: Permission.READ,
    RequestCode.GET_PARENT_TOPIC_INFO: Permission.READ,
    RequestCode.GET_LITE_TOPIC_INFO: Permission.READ,
    RequestCode.GET_LITE_CLIENT_INFO: Permission.READ,
    RequestCode.GET_LITE_GROUP_INFO: Permission.READ,
    RequestCode.TRIGGER_LITE_DISPATCH: Permission.UPDATE,
}


class LiteTopics:
    """Refuses requests about lite topics."""

    def __init__(self, _state: BrokerState, _runtime: BrokerRuntime) -> None:
        """Accept what every family is created with; nothing of it is needed."""

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return [Route(code, _refuse, permission) for code, permission in _CODES.items()]


def refuse_message(properties: bytes) -> None:
    """Refuse a message to a lite topic: its subscribers would never get it.

    Raises:
        RemotingError: the message names a lite topic.
    """
    if LITE_TOPIC in decode_properties(properties):
        raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, _REASON)


def _refuse(_peer: Peer, request: Command) -> Command:
    # These are upstream's first words for codes that a broker does not serve: clients search for
    # the code.
    remark = f" request type {request.code} not supported: {_REASON}"
    return response(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
