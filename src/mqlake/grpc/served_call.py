"""One call: its requests, its handler and its responses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

from google.protobuf.message import Message

from mqlake.grpc.call import Call, FinishedCall
from mqlake.grpc.http2.frames import ErrorCode, reset
from mqlake.grpc.method import Method, MethodKind
from mqlake.grpc.outlet import Outlet
from mqlake.grpc.parsing import parse_at_once
from mqlake.grpc.request_bytes import whole_message
from mqlake.grpc.request_stream import RequestStream
from mqlake.grpc.response_stream import ResponseStream
from mqlake.grpc.status import GrpcError, GrpcStatus

_log: Final = logging.getLogger("mqlake.grpc")

_LARGE_METHOD: Final = "SendMessage"
"""The method whose requests may be large."""


class ServedCall:
    """A call from its headers to its end: runs the handler of its method.

    Args:
        outlet: what its connection sends.
        number: the stream.
        method: what is called.
        call: what the handler knows.
        closed: called once nothing more is to be received or sent.

    Attributes:
        call: what its handler knows.
        output: what it sends.
        is_half_closed: whether all requests have arrived.
        is_answered: whether the call has ended with a status.
        moved: the loop time at which a request last progressed.
    """

    __slots__ = (
        "_began",
        "_closed",
        "_is_over",
        "_kept",
        "_method",
        "_outlet",
        "_received",
        "_requests",
        "_responses",
        "_task",
        "call",
        "is_answered",
        "is_half_closed",
        "moved",
        "output",
    )

    def __init__(
        self,
        outlet: Outlet,
        number: int,
        method: Method,
        call: Call,
        closed: Callable[[ServedCall], object],
    ) -> None:
        self._outlet, self._method, self._closed = outlet, method, closed
        self.call = call
        self._requests: RequestStream | None = None
        self._responses = ResponseStream(outlet, number)
        self.output = self._responses.output
        self.is_half_closed = self.is_answered = self._is_over = False
        self._kept = self._received = 0
        self._task: asyncio.Future[Any] | None = None
        self._began = perf_counter()
        self.moved = 0.0

    # Requests

    def begin(self, now: float, size: int) -> None:
        """Start the handler of a method that does not wait for its first request.

        Args:
            size: bytes of the headers.
        """
        self.moved = now
        self._keep(size)
        if self._method.kind is MethodKind.BIDIRECTIONAL:
            self._requests = requests = self._new_requests()
            self._run(self._serve_stream(requests))

    def receive(self, data: bytes, size: int, now: float, *, is_last: bool) -> bool:
        """Receive the content of a DATA frame; return whether it is allowed.

        If it is not, the call is reset.

        Args:
            size: what the frame counts in the window.
        """
        self.moved = now
        if self.is_half_closed:
            self.reset(ErrorCode.STREAM_CLOSED)
            return False
        requests = self._requests
        if requests is None:
            if is_last and not self._is_over:
                message = whole_message(data, self._most)
                if message is not None:
                    self.is_half_closed = True
                    self._received = len(data)
                    self._start(message)
                    return True
            requests = self._requests = self._new_requests()
            if self._is_over:
                requests.close()
        if not requests.receive(data, size, is_last=is_last):
            self.reset(ErrorCode.FLOW_CONTROL_ERROR)
            return False
        self.is_half_closed = is_last
        if not self._is_over:
            self._received += len(data)
            if self._method.kind is not MethodKind.BIDIRECTIONAL:
                self._start_if_complete(requests)
        return True

    @property
    def _most(self) -> int:
        """Return how many bytes a request may have."""
        limits = self._outlet.limits
        return limits.message if self._method.name == _LARGE_METHOD else limits.other

    def _new_requests(self) -> RequestStream:
        is_large = self._method.name == _LARGE_METHOD
        setting = "grpcMaxInboundMessageSize" if is_large else "grpcMaxInboundRequestSize"
        return RequestStream(self._outlet, self.output.number, self._method, self._most, setting)

    def _start_if_complete(self, requests: RequestStream) -> None:
        try:
            message = requests.take_only()
        except GrpcError as error:
            self.end(error.status, error.message)
            return
        if message is not None:
            self._start(message)

    # The handler

    def _start(self, message: bytes) -> None:
        """Serve the only request of a call."""
        method = self._method
        try:
            parsed = parse_at_once(method.request, message)
            if parsed is None:
                self._keep(len(message))
                self._run(self._serve_large(message))
                return
            request, cost = parsed
            self._keep(cost)
            result = method.handler(self.call, request)
            if method.kind is not MethodKind.UNARY:
                self._run(self._send_all(result))
            elif isinstance(result, Message):
                self._respond(result)
            else:
                self._run(result)
        except asyncio.CancelledError:
            self.end(GrpcStatus.CANCELLED, "the call was cancelled")
        except Exception as error:  # noqa: BLE001 (whatever is raised ends the call)
            self._fail(error)

    async def _serve_large(self, message: bytes) -> Message | None:
        """Serve the only request of a call, which is large; return the response to a unary one."""
        method = self._method
        request, cost = await self._outlet.large.parse(method.request, message)
        del message  # The handler may take long.
        if self._is_over:
            return None
        self._keep(cost)
        result = method.handler(self.call, request)
        if method.kind is not MethodKind.UNARY:
            await self._send_all(result)
            return None
        return result if isinstance(result, Message) else await result

    async def _serve_stream(self, requests: RequestStream) -> None:
        """Serve the requests of a call as they arrive."""
        messages = requests.messages()
        try:
            await self._send_all(self._method.handler(self.call, messages))
        finally:
            with suppress(RuntimeError):  # A task of the handler waits for requests.
                await messages.aclose()

    async def _send_all(self, answers: Any) -> None:
        """Send responses as fast as the client reads them."""
        try:
            async for answer in answers:
                if self._is_over:  # The handler has not noticed that it was cancelled.
                    return
                self._responses.send(answer)
                await self._responses.drain()
        finally:
            await answers.aclose()

    def _respond(self, response: Message) -> None:
        """Send the only response of a call, and end it."""
        self._responses.send_only(response)
        self._close(GrpcStatus.OK)

    def _run(self, result: Any) -> None:
        """Serve the call in a task, or when a future is done."""
        self._task = task = asyncio.ensure_future(result)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._task = None
        if self._is_over:
            self._outlet.end_lingering(task)
        elif task.cancelled():
            self.end(GrpcStatus.CANCELLED, "the call was cancelled")
        elif (error := task.exception()) is not None:
            self._fail(error)
        elif self._method.kind is MethodKind.UNARY:
            try:
                self._respond(task.result())
            except Exception as wrong:  # noqa: BLE001 (what is no response ends the call, too)
                self._fail(wrong)
        else:
            self.end(GrpcStatus.OK)

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, GrpcError):
            self.end(error.status, error.message)
            return
        _log.error("%s: %s failed", self.call.peer, self._method.name, exc_info=error)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        self.end(GrpcStatus.INTERNAL, text)

    def _stop_task(self) -> None:
        """Cancel the handler; a future that it returned may belong to others, and is left."""
        task = self._task
        if task is None:
            return
        self._outlet.note_lingering()  # Until `_done` is called.
        if isinstance(task, asyncio.Task):
            task.cancel()

    # Progress

    @property
    def is_endless(self) -> bool:
        """Return whether only the client ends it."""
        return self._method.kind is MethodKind.BIDIRECTIONAL

    def is_stuck(self, before: float) -> bool:
        """Return whether a request or a response has not progressed since a loop time."""
        if self.output.waiting and self.output.moved < before:
            return True
        if self.is_half_closed or self.moved >= before or self._is_over:
            return False
        if self._method.kind is not MethodKind.BIDIRECTIONAL:
            return True
        return self._requests is not None and self._requests.is_incomplete

    def note_moved(self) -> None:
        """Note that some of what waited was sent."""
        if self._is_over and not self.output.waiting:
            self._release()
        else:
            self._responses.note_moved()

    # The end

    def end(self, status: GrpcStatus, message: str = "") -> None:
        """Send the end of the call."""
        if not self._is_over:
            self._responses.end(status, message)
            self._close(status)

    def _close(self, status: GrpcStatus) -> None:
        """Forget the call once everything is sent."""
        self.is_answered = True
        self._finish(status)
        if not self.output.waiting:
            self._release()

    def _release(self) -> None:
        """Forget a call whose answer is sent; if its requests have not ended, stop them."""
        if not self.is_half_closed:
            self._outlet.write(reset(self.output.number, ErrorCode.NO_ERROR))
        self._closed(self)

    def reset(self, code: ErrorCode) -> None:
        """End the call without an answer."""
        self._outlet.write(reset(self.output.number, code))
        self.cancel()

    def cancel(self) -> None:
        """Forget the call at once: nobody waits for its answer."""
        self.call.cancel()
        if not self._is_over:
            self._finish(GrpcStatus.CANCELLED)
        self._closed(self)

    def _finish(self, status: GrpcStatus) -> None:
        """Stop the handler, count nothing for the call any more, and report what it has cost."""
        self._is_over = True
        if self._requests is not None:
            self._requests.close()
        self._keep(-self._kept)
        self._stop_task()
        seconds = perf_counter() - self._began
        self._outlet.note_finished(
            FinishedCall(self.call, status, seconds, self._received, self._responses.sent)
        )

    def _keep(self, size: int) -> None:
        """Count what is kept while the call is served."""
        self._kept += size
        self._outlet.count_served(size)
