"""How a call ends: the status codes of gRPC. RocketMQ's own codes are in the responses."""

from __future__ import annotations

from enum import IntEnum

from mqlake.errors import MqlakeError


class GrpcStatus(IntEnum):
    """The status of a call that has ended."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class GrpcError(MqlakeError):
    """A call ends with this status. A handler may raise it.

    Attributes:
        status: what the client receives.
        message: why, in one line.
    """

    def __init__(self, status: GrpcStatus, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message
