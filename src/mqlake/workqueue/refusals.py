"""Distinguish temporary errors of the client from permanent ones."""

from __future__ import annotations

from mqlake.client.errors import BrokerError, RefusedError
from mqlake.errors import FormatError, MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

_PASSING = frozenset(
    (
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.TOPIC_NOT_EXIST,
    )
)
"""Response codes after which the same broker may accept a later request: it starts, stops or is
overloaded, or the retry creates the topic again.
"""


def is_final(error: MqlakeError) -> bool:
    """Return whether a broker or the client refused a request for a permanent reason."""
    if isinstance(error, (RefusedError, BrokerError, RemotingError)):
        return error.code not in _PASSING
    return isinstance(error, FormatError)
