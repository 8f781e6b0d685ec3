"""The bodies of requests about users and ACLs, and of their answers."""

from __future__ import annotations

from typing import Final, TypeVar

from mqlake.auth.requests.host import AccountLimits
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.members import Members

_MAX_LENIENT: Final = 16_384
"""Maximum length in bytes of a body that may be other than strict JSON."""

T = TypeVar("T")


def body_of(kind: type[T], request: Command, limits: AccountLimits) -> T | None:
    """Return the content of a request's JSON body, None without a body.

    Raises:
        BodyError: the body is not valid JSON of this kind.
        RemotingError: the body is longer than `maxAdminBodySize`.
    """
    size, most = len(request.body), limits.max_admin_body_size
    if size > most:
        reason = f"the body has {size} bytes; the maximum is {most} (maxAdminBodySize)"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
    return decode_body(kind, request.body, _MAX_LENIENT) if size else None


def array(found: Members) -> bytes:
    """Return members as a JSON array; b"" without members, as RocketMQ answers."""
    return b"[" + b",".join(found) + b"]" if len(found) else b""
