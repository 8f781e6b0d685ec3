"""Decode the bodies of requests: none is so long that decoding it would hold up the event loop."""

from __future__ import annotations

from typing import Final, TypeVar

from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError

T = TypeVar("T")

MAX_LENIENT: Final = 16_384
"""Longest body in bytes that may be other than strict JSON: fastjson's dialect is read by Python
code."""


def request_body(kind: type[T], request: Command, most: int, setting: str) -> T:
    """Return what the JSON body of a request says.

    Args:
        most: bytes that it may have.
        setting: the name of the setting that says so.

    Raises:
        BodyError: it is no such JSON.
        RemotingError: it is too long.
    """
    check_size(request, most, setting)
    return decode_body(kind, request.body, MAX_LENIENT)


def check_size(request: Command, most: int, setting: str) -> None:
    """Refuse a request whose body is too long.

    Raises:
        RemotingError: it is longer than `most` bytes.
    """
    size = len(request.body)
    if size > most:
        reason = f"the body has {size} bytes, and {most} are allowed ({setting})"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
