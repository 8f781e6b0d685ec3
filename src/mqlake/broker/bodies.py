"""Decode the bodies of requests: none is so long that decoding would block the event loop."""

from __future__ import annotations

from typing import Final, TypeVar

from mqlake.broker.settings import BrokerSettings
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError

T = TypeVar("T")

MAX_LENIENT: Final = 16_384
"""Maximum length in bytes of a body that may be other than strict JSON: Python code parses
fastjson's dialect.
"""


def request_body(kind: type[T], request: Command, most: int, setting: str) -> T:
    """Return the content of a request's JSON body.

    Args:
        most: the maximum size in bytes.
        setting: the name of the setting for it.

    Raises:
        BodyError: the body is not valid JSON of this kind.
        RemotingError: the body is too long.
    """
    check_size(request, most, setting)
    return decode_body(kind, request.body, MAX_LENIENT)


def check_size(request: Command, most: int, setting: str) -> None:
    """Refuse a request whose body is too long.

    Raises:
        RemotingError: the body is longer than `most` bytes.
    """
    size = len(request.body)
    if size > most:
        reason = f"the body has {size} bytes; the maximum is {most} ({setting})"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)


def admin_body(kind: type[T], request: Command, settings: BrokerSettings) -> T:
    """Return the content of a JSON body of an administrative request.

    Raises:
        BodyError: the body is not valid JSON of this kind.
        RemotingError: the body is longer than `maxAdminBodySize`.
    """
    return request_body(kind, request, settings.max_admin_body_size, "maxAdminBodySize")
