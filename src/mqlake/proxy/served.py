"""One method of the service: who calls, what is answered, errors, counts.

A handler receives the call, who makes it, and the request. Whatever it raises is answered with a
status; the gRPC status stays OK.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from time import perf_counter
from typing import Any, NamedTuple

from mqlake.grpc import messages
from mqlake.grpc.call import Call
from mqlake.grpc.method import Method, MethodKind
from mqlake.proxy.at_once import begun
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.counts import CallCounts
from mqlake.proxy.errors import outcome_of_error
from mqlake.proxy.gate import Gate

Handler = Callable[[Call, Caller, Any], Any]


class ServedMethod(NamedTuple):
    """A method and its handler.

    Attributes:
        name: such as "SendMessage": its messages are named `SendMessageRequest` and so on.
        handler: a coroutine function that returns the response, or, for a stream of responses, an
            async generator.
        is_stream: whether there may be several responses.
        begins_at_once: whether the handler may begin outside of a task (`at_once.begun`).
    """

    name: str
    handler: Handler
    is_stream: bool = False
    begins_at_once: bool = False


class Serving:
    """Makes methods of handlers.

    Args:
        begins_at_once: whether handlers that may begin outside of a task do so.
    """

    def __init__(self, gate: Gate, counts: CallCounts, *, begins_at_once: bool = False) -> None:
        self._gate, self._counts = gate, counts
        self._begins_at_once = begins_at_once

    def method(self, served: ServedMethod) -> Method:
        """Return a method of the service."""
        request: Any = getattr(messages, f"{served.name}Request")
        response: Any = getattr(messages, f"{served.name}Response")
        if served.is_stream:
            kind, handler = MethodKind.SERVER_STREAM, self._stream(served, response)
        else:
            kind, handler = MethodKind.UNARY, self._unary(served, response)
        return Method(served.name, request, response, kind, handler)

    def _unary(self, served: ServedMethod, kind: Any) -> Callable[[Call, Any], Any]:
        name, handler, counts, caller_of = (
            served.name,
            served.handler,
            self._counts,
            self._gate.caller,
        )

        async def serve(call: Call, request: Any) -> Any:
            begin = perf_counter()
            try:
                response = await handler(call, await caller_of(call), request)
            except Exception as error:  # noqa: BLE001 (whatever is raised is the answer)
                outcome = outcome_of_error(error, f"{call.peer}: {name}")
                response = kind(status=outcome.status)
            counts.add(name, response.status.code, perf_counter() - begin, call.peer)
            return response

        if self._begins_at_once and served.begins_at_once:
            return lambda call, request: begun(serve(call, request))
        return serve

    def _stream(self, served: ServedMethod, kind: Any) -> Callable[[Call, Any], AsyncIterator[Any]]:
        name, handler, counts, caller_of = (
            served.name,
            served.handler,
            self._counts,
            self._gate.caller,
        )

        async def serve(call: Call, request: Any) -> AsyncIterator[Any]:
            code = messages.Code.OK.value
            try:
                async with aclosing(handler(call, await caller_of(call), request)) as responses:
                    async for response in responses:
                        if response.WhichOneof("content") == "status":
                            code = response.status.code
                        yield response
            except Exception as error:  # noqa: BLE001 (as above)
                outcome = outcome_of_error(error, f"{call.peer}: {name}")
                code = outcome.code
                yield kind(status=outcome.status)
            # It may have waited for messages: that is not slow.
            counts.add(name, code, None, call.peer)

        return serve
