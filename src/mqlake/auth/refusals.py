"""Refusals of requests, with the words of RocketMQ."""

from __future__ import annotations

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

_LONGEST = 255


def refused(remark: str) -> RemotingError:
    """Return the answer to a request that its sender may not make."""
    return RemotingError(ResponseCode.NO_PERMISSION, remark)


def shown(name: str) -> str:
    """Return a name from a request for a remark or a log: printable, and not too long."""
    text = name[:_LONGEST]
    return text if text.isprintable() else ascii(text)
