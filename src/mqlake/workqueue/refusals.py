"""Which errors of the client pass by themselves."""

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
"""What the same broker may answer otherwise a little later: it starts, stops or is overloaded, or
the topic is created again by the retry."""


def is_final(error: MqlakeError) -> bool:
    """Return whether a broker or the client refused a request for a reason that does not pass."""
    if isinstance(error, (RefusedError, BrokerError, RemotingError)):
        return error.code not in _PASSING
    return isinstance(error, FormatError)
