"""The bodies of requests about users and ACLs, and of their answers."""

from __future__ import annotations

from typing import TypeVar

from mqlake.auth.requests.host import AccountLimits
from mqlake.protocol.body import request_body
from mqlake.protocol.command import Command
from mqlake.remoting.members import Members

T = TypeVar("T")


def body_of(kind: type[T], request: Command, limits: AccountLimits) -> T | None:
    """Return the content of a request's JSON body, None without a body.

    Raises:
        BodyError: the body is not valid JSON of this kind.
        RemotingError: the body is longer than `maxAdminBodySize`.
    """
    if not request.body:
        return None
    return request_body(kind, request, limits.max_admin_body_size, "maxAdminBodySize")


def array(found: Members) -> bytes:
    """Return members as a JSON array; b"" without members, as RocketMQ answers."""
    return b"[" + b",".join(found) + b"]" if len(found) else b""
