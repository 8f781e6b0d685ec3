"""Errors of brokers as codes of the gRPC service: the only place that knows both.

Upstream: `ResponseBuilder`, `GrpcProxyException`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from mqlake.errors import FormatError, MqlakeError
from mqlake.grpc.messages import Code, Status
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

_log: Final = logging.getLogger("mqlake.proxy")

_LONGEST: Final = 1024
"""Characters of a status's message. Some are repeated for each message of a batch."""

CODES: Final[Mapping[int, Code]] = MappingProxyType(
    {
        ResponseCode.SUCCESS: Code.OK,
        ResponseCode.SYSTEM_BUSY: Code.TOO_MANY_REQUESTS,
        ResponseCode.SERVICE_NOT_AVAILABLE: Code.TOO_MANY_REQUESTS,
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED: Code.NOT_IMPLEMENTED,
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: Code.CONSUMER_GROUP_NOT_FOUND,
        ResponseCode.TOPIC_NOT_EXIST: Code.TOPIC_NOT_FOUND,
        ResponseCode.LMQ_QUOTA_EXCEEDED: Code.LITE_TOPIC_QUOTA_EXCEEDED,
        ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED: Code.LITE_SUBSCRIPTION_QUOTA_EXCEEDED,
        ResponseCode.NO_PERMISSION: Code.UNAUTHORIZED,
    }
)
"""Codes of the service by the codes of a broker's responses; all others are `OTHER`."""
_PLAIN_REFUSAL: Final = "org.apache.rocketmq.acl.common.AclException"
"""How the remark of a refusal by ACL 1.0 begins; its code is that of many errors."""
OTHER: Final = Code.INTERNAL_SERVER_ERROR


class StatusError(MqlakeError):
    """A call is answered with a code other than OK.

    Attributes:
        code: of `Code`.
        message: why, for the user of the client.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class CallStatus(NamedTuple):
    """A code and a message: what a `Status` consists of."""

    code: Code
    message: str

    @property
    def status(self) -> Status:
        """The status of a response."""
        return Status(code=self.code, message=self.message[:_LONGEST])


OK: Final = CallStatus(Code.OK, Code.OK.name)


def outcome_of(response: Command) -> CallStatus:
    """Return what the response of a broker means."""
    return OK if response.code == ResponseCode.SUCCESS else _of_refusal(response)


def check(response: Command) -> Command:
    """Return the response of a broker if it reports success.

    Raises:
        StatusError: it does not.
    """
    if response.code != ResponseCode.SUCCESS:
        raise StatusError(*outcome_of(response))
    return response


def outcome_of_error(error: Exception, call: str) -> CallStatus:
    """Return the answer to a call that failed. Unexpected errors are logged.

    Args:
        call: whose call of which method it was, for the log.
    """
    if isinstance(error, StatusError):
        return CallStatus(error.code, error.message)
    if isinstance(error, RemotingError):
        return _of_refusal(error)
    if isinstance(error, RequestTimeoutError):
        return CallStatus(Code.PROXY_TIMEOUT, str(error) or "the broker has not answered in time")
    if isinstance(error, (ConnectionFailedError, FormatError)):
        return CallStatus(OTHER, str(error))
    if isinstance(error, MqlakeError):
        _log.error("%s: %s", call, error)
        return CallStatus(OTHER, str(error))
    _log.error("%s failed", call, exc_info=error)
    return CallStatus(OTHER, f"{type(error).__name__}: {error}")


def _of_refusal(refusal: Command | RemotingError) -> CallStatus:
    code, remark = CODES.get(refusal.code, OTHER), refusal.remark or ""
    if remark.startswith(_PLAIN_REFUSAL):
        code = Code.UNAUTHORIZED
    return CallStatus(code, remark or code.name)
