"""The headers of a call: what HTTP/2 and gRPC have in them besides metadata."""

from __future__ import annotations

import re
from typing import Final

from mqlake.errors import MqlakeError
from mqlake.grpc.http2.headers import MALFORMED

_TYPE: Final = re.compile(r"application/grpc(?:[+;].*)?")
_TIMEOUT: Final = re.compile(r"(\d{1,8})([HMSmun])")
_UNITS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


class CallRefusedError(MqlakeError):
    """A request that is not a call of gRPC.

    Attributes:
        status: the status of HTTP that answers it.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class CallHeaders:
    """The pseudo headers of a call, removed from its metadata.

    Args:
        fields: the fields of its headers. What is metadata is left in them.

    Attributes:
        path: which method is called.
        authority: the name of this server.

    Raises:
        CallRefusedError: it is no call of gRPC.
    """

    __slots__ = ("authority", "path")

    def __init__(self, fields: dict[str, str]) -> None:
        method = fields.pop(":method", "")
        self.path = fields.pop(":path", "")
        self.authority = fields.pop(":authority", "") or fields.get("host", "")
        fields.pop(":scheme", None)
        if method != "POST":
            raise CallRefusedError(405, "this port serves gRPC: only POST is allowed")
        if MALFORMED in fields:
            raise CallRefusedError(400, "a header is not allowed")
        if _TYPE.fullmatch(fields.get("content-type", "")) is None:
            raise CallRefusedError(415, "this port serves gRPC: content-type application/grpc")


def timeout_of(fields: dict[str, str]) -> float | None:
    """Return the seconds that the client waits; None if it states no timeout.

    Raises:
        CallRefusedError: it is not a duration.
    """
    text = fields.get("grpc-timeout")
    if text is None:
        return None
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise CallRefusedError(400, f"grpc-timeout is {text[:32]!r}")
    return int(match[1]) * _UNITS[match[2]]
