"""All requests about lite topics (docs/lite-topics.md)."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.lite.admin import LiteAdmin
from mqlake.broker.lite.pops import LitePops
from mqlake.broker.lite.subscribing import LiteSubscribing
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route


class LiteRequests:
    """Serves requests about lite topics."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._pops = LitePops(state, runtime)
        self._subscribing = LiteSubscribing(state, runtime)
        self._admin = LiteAdmin(state, runtime)

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        admin, code = self._admin, RequestCode
        return (
            Route(code.POP_LITE_MESSAGE, self._pops.pop, Permission.SUBSCRIBE),
            Route(code.LITE_SUBSCRIPTION_CTL, self._subscribing.change, Permission.SUBSCRIBE),
            Route(code.ACK_LITE_MESSAGE, _refuse, Permission.SUBSCRIBE),
            Route(code.NOTIFY_UNSUBSCRIBE_LITE, _refuse, Permission.SUBSCRIBE),
            Route(code.GET_BROKER_LITE_INFO, admin.broker_info, Permission.READ),
            Route(code.GET_PARENT_TOPIC_INFO, admin.parent_info, Permission.READ),
            Route(code.GET_LITE_TOPIC_INFO, admin.topic_info, Permission.READ),
            Route(code.GET_LITE_CLIENT_INFO, admin.client_info, Permission.READ),
            Route(code.GET_LITE_GROUP_INFO, admin.group_info, Permission.READ),
            Route(code.TRIGGER_LITE_DISPATCH, admin.trigger, Permission.UPDATE),
        )


def _refuse(_peer: Peer, request: Command) -> Command:
    """Refuse requests that only clients serve, or that no client sends."""
    remark = f" request type {request.code} not supported: acknowledge with ACK_MESSAGE"
    return response(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
