"""Errors for bytes that violate the protocol, and for requests that are refused."""

from __future__ import annotations

from mqlake.errors import FormatError, MqlakeError


class FrameError(FormatError):
    """Bytes on a connection that are no frame; what follows them cannot be read."""


class HeaderError(FormatError):
    """A request or response whose header fields are not those that its code asks for."""


class BodyError(FormatError):
    """A body that is not what its request or response should carry."""


class RemotingError(MqlakeError):
    """A request that was answered with another code than the one it hoped for.

    Raised by a handler, it is the answer. Raised by a client, it is what the other side answered.

    Attributes:
        code: of `mqlake.protocol.codes.ResponseCode`, or one that is not known here.
        remark: the answer's remark.
    """

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(remark)
        self.code = int(code)
        self.remark = remark
