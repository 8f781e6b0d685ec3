"""The methods of a service: names, types, and who serves them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

from google.protobuf.message import Message

from mqlake.grpc.call import Call

SERVICE: Final = "apache.rocketmq.v2.MessagingService"
"""The service of RocketMQ's clients."""

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class MethodKind(Enum):
    """How many messages a call has in each direction."""

    UNARY = "unary"
    """One request, one response."""
    SERVER_STREAM = "server stream"
    """One request, any number of responses."""
    BIDIRECTIONAL = "bidirectional stream"
    """Any number of both, in any order."""


class Method(NamedTuple):
    """A method and its handler.

    A unary handler is a coroutine function, or a function that returns its response at once, which
    costs less. The other kinds are async generators. A handler may raise `GrpcError`; any other
    exception ends the call with INTERNAL, and is logged. When the client cancels a call or
    disappears, the handler is cancelled.

    Attributes:
        name: such as "SendMessage".
        request: the class of requests.
        response: the class of responses.
        kind: how many of both a call has.
        handler: what serves a call. Arguments: the `Call`, and the request or the requests.
        service: the full name of its service.
    """

    name: str
    request: type[Message]
    response: type[Message]
    kind: MethodKind
    handler: Callable[[Call, Any], Any]
    service: str = SERVICE

    @property
    def path(self) -> str:
        """Return what HTTP requests name it by."""
        return f"/{self.service}/{self.name}"


def unary(
    name: str,
    request: type[Q],
    response: type[R],
    handler: Callable[[Call, Q], R | Awaitable[R]],
) -> Method:
    """Return a method with one request and one response."""
    return Method(name, request, response, MethodKind.UNARY, handler)


def bidirectional(
    name: str,
    request: type[Q],
    response: type[R],
    handler: Callable[[Call, AsyncIterator[Q]], AsyncIterator[R]],
) -> Method:
    """Return a method with any number of requests and responses."""
    return Method(name, request, response, MethodKind.BIDIRECTIONAL, handler)
