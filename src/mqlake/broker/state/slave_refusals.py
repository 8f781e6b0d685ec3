"""The requests that a slave refuses, and those that wait when a master becomes a slave.

Upstream: `rejectRequest`, `validateSlave`, `EndTransactionProcessor`. Requests that a slave
forwards to its master (CONSUMER_SEND_MSG_BACK) are not here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mqlake.broker.settings import BrokerSettings
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.replication.replicas import Replicas
from mqlake.store.live_settings import Current


class _SlaveRefusal(NamedTuple):
    code: ResponseCode
    reason: str


# With this code, producers of all releases try another broker.
_NOT_HERE = _SlaveRefusal(
    ResponseCode.SERVICE_NOT_AVAILABLE,
    "[REJECTREQUEST]this broker is a slave: send to the master of its name",
)
_TRANSACTION = _SlaveRefusal(
    ResponseCode.SLAVE_NOT_AVAILABLE, "this broker is a slave: ask the master of its name"
)
_TABLE = _SlaveRefusal(
    ResponseCode.SYSTEM_ERROR,
    "Can't modify topic or subscription group from slave broker, please execute it from master"
    " broker.",
)
_OFFSET = _SlaveRefusal(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")
_POP = _SlaveRefusal(
    ResponseCode.SERVICE_NOT_AVAILABLE,
    "[REJECTREQUEST]this broker is a slave: pop from the master of its name",
)
_READ = _SlaveRefusal(
    ResponseCode.SYSTEM_BUSY,
    "[REJECTREQUEST]this broker is a slave that serves no reads (slaveReadEnable)",
)

REFUSED: Final = {
    **dict.fromkeys(
        (
            RequestCode.SEND_MESSAGE,
            RequestCode.SEND_MESSAGE_V2,
            RequestCode.SEND_BATCH_MESSAGE,
        ),
        _NOT_HERE,
    ),
    **dict.fromkeys(
        (
            RequestCode.END_TRANSACTION,
            RequestCode.RESUME_CHECK_HALF_MESSAGE,
            RequestCode.RECALL_MESSAGE,
        ),
        _TRANSACTION,
    ),
    **dict.fromkeys(
        (
            RequestCode.UPDATE_AND_CREATE_TOPIC,
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
            RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
            RequestCode.DELETE_TOPIC_IN_BROKER,
            RequestCode.DELETE_TOPIC_IN_BROKER_LIST,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
            RequestCode.DELETE_SUBSCRIPTIONGROUP,
            RequestCode.DELETE_SUBSCRIPTION_GROUP_LIST,
            RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN,
            RequestCode.SET_MESSAGE_REQUEST_MODE,
            RequestCode.CLEAN_UNUSED_TOPIC,
        ),
        _TABLE,
    ),
    **dict.fromkeys(
        (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RequestCode.CLONE_GROUP_OFFSET), _OFFSET
    ),
    **dict.fromkeys(
        (
            RequestCode.POP_MESSAGE,
            RequestCode.POP_LITE_MESSAGE,
            RequestCode.ACK_MESSAGE,
            RequestCode.BATCH_ACK_MESSAGE,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        ),
        _POP,
    ),
}
"""A slave's responses to requests that only a master serves, by request code."""

_READS: Final = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))


class SlaveRefusals:
    """Checked before every route while the broker is a slave."""

    def __init__(self, settings: Current[BrokerSettings], replicas: Replicas) -> None:
        self._settings, self._replicas = settings, replicas

    def check(self, _peer: Peer, request: Command, _route: Route) -> None:
        """Refuse requests that a slave does not serve.

        Raises:
            RemotingError: the response.
        """
        self.check_code(request.code)

    def check_code(self, code: int) -> None:
        """Refuse a request that waits, if this broker has become a slave that does not serve it.

        Raises:
            RemotingError: the response.
        """
        if (refusal := self.of(code)) is not None:
            raise refusal

    def of(self, code: int) -> RemotingError | None:
        """Return the response to a request that this broker does not serve, None if it does."""
        settings = self._settings.now
        if not settings.is_slave:
            return None
        refusal = REFUSED.get(code)  # pyright: ignore[reportArgumentType,reportCallIssue]
        if refusal is None and code in _READS and not self._serves_reads(settings):
            refusal = _READ
        return None if refusal is None else RemotingError(*refusal)

    def _serves_reads(self, settings: BrokerSettings) -> bool:
        replicas = self._replicas
        return settings.slave_read_enable or replicas.is_acting or replicas.has_acted
