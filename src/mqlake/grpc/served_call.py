"""One call: its requests, its handler and its responses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

from google.protobuf.message import Message

from mqlake.grpc import responses
from mqlake.grpc.call import Call, FinishedCall
from mqlake.grpc.http2.frames import ErrorCode, reset
from mqlake.grpc.http2.sending import StreamOutput
from mqlake.grpc.method import Method, MethodKind
from mqlake.grpc.outlet import Outlet
from mqlake.grpc.parsing import LARGE, cost_of_small, parse
from mqlake.grpc.request_bytes import RequestBytes
from mqlake.grpc.responses import PREFIX_SIZE
from mqlake.grpc.status import GrpcError, GrpcStatus

_log: Final = logging.getLogger("mqlake.grpc")

WINDOW: Final = 1 << 20
"""Bytes that a client may send on one stream before more is granted."""
_LARGE_METHOD: Final = "SendMessage"
"""The method whose requests may be large."""
_MUCH: Final = 1 << 16
"""Bytes of responses that wait before the handler is asked for more."""
_AT_ONCE: Final = 16
"""Requests of a stream that are served before others have their turn."""


class ServedCall:
    """A stream of HTTP/2 from the headers of the call to its end.

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
        "_buffer",
        "_closed",
        "_has_headers",
        "_is_over",
        "_kept",
        "_method",
        "_outlet",
        "_partial",
        "_received",
        "_sent",
        "_task",
        "_until_arrival",
        "_until_sent",
        "_window",
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
        self.output = StreamOutput(number, outlet.windows.first_window)
        self.is_half_closed = self.is_answered = False
        self._is_over = self._has_headers = False
        self._partial = self._kept = self._received = self._sent = 0
        self._window = WINDOW
        self._buffer: RequestBytes | None = None
        self._task: asyncio.Future[Any] | None = None
        self._until_arrival: asyncio.Future[None] | None = None
        self._until_sent: asyncio.Future[None] | None = None
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
            self._buffer = RequestBytes(self._most)
            self._run(self._serve_stream())

    def receive(self, data: bytes, size: int, now: float, *, is_last: bool) -> bool:
        """Receive the content of a DATA frame; return whether it is allowed.

        If it is not, the call is reset.

        Args:
            size: what the frame counts in the window.
        """
        self.moved = now
        self._window -= size
        if self.is_half_closed or self._window < 0:
            code = ErrorCode.STREAM_CLOSED if self.is_half_closed else ErrorCode.FLOW_CONTROL_ERROR
            self.reset(code)
            return False
        self.is_half_closed = is_last
        if self._is_over:
            return True
        self._received += len(data)
        if (
            is_last
            and self._buffer is None
            and len(data) >= PREFIX_SIZE
            and not data[0]
            and int.from_bytes(data[1:PREFIX_SIZE]) == len(data) - PREFIX_SIZE
            and len(data) <= self._most
        ):
            self._start(data[PREFIX_SIZE:])
        else:
            self._collect(data)
        return True

    @property
    def _most(self) -> int:
        """Return how many bytes a request may have."""
        limits = self._outlet.limits
        return limits.message if self._method.name == _LARGE_METHOD else limits.other

    def _collect(self, data: bytes) -> None:
        """Keep a part of a request, and start the handler once it is complete."""
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = RequestBytes(self._most)
        buffer.add(data)
        self._hold(buffer.held)
        if self._method.kind is MethodKind.BIDIRECTIONAL:
            _wake(self._until_arrival)
            return
        try:
            missing = buffer.missing()
            if missing > self._window and not self.is_half_closed:
                self._grant(missing)
            message = buffer.take() if self.is_half_closed else None
        except GrpcError as error:
            self.end(error.status, error.message)
            return
        if message is not None and not buffer.held:
            self._start(message)
        elif self.is_half_closed:
            self.end(GrpcStatus.INTERNAL, "the call has not exactly one whole request")

    async def _requests(self) -> AsyncGenerator[Message]:
        """Yield the requests of a stream as they arrive."""
        count, buffer = 0, self._buffer
        assert buffer is not None
        while not self._is_over:
            missing = buffer.missing()
            if not missing:
                message = buffer.take()
                assert message is not None
                self._hold(buffer.held)
                if self._window < WINDOW // 2 and not self.is_half_closed:
                    self._grant(WINDOW - buffer.held)
                yield await self._parse(message)
                count += 1
                if not count % _AT_ONCE:
                    await asyncio.sleep(0)
            elif self.is_half_closed:
                if buffer.held:
                    raise GrpcError(GrpcStatus.INTERNAL, "the last request is not complete")
                return
            else:
                if missing > self._window:
                    self._grant(missing)
                self._until_arrival = self._outlet.new_waiter()
                await self._until_arrival

    async def _parse(self, message: bytes) -> Message:
        """Parse one of several requests."""
        kind = self._method.request
        if len(message) <= LARGE:
            return parse(kind, message)
        return (await self._outlet.large.parse(kind, message))[0]

    def _grant(self, window: int) -> None:
        """Let the client send so many bytes from now on."""
        if window > self._window:
            self._outlet.grant(self.output.number, window - self._window)
            self._window = window

    def _hold(self, size: int) -> None:
        """Count what has arrived of requests that are not served yet."""
        if size != self._partial:
            self._outlet.count_partial(size - self._partial)
            self._partial = size

    def _keep(self, size: int) -> None:
        """Count what is kept while the call is served."""
        self._kept += size
        self._outlet.count_served(size)

    def _drop(self) -> None:
        """Count nothing any more."""
        self._hold(0)
        self._keep(-self._kept)
        self._buffer = None

    # The handler

    def _start(self, message: bytes) -> None:
        """Serve the only request of a call."""
        self._hold(0)
        self._buffer = None
        method = self._method
        if len(message) > LARGE:
            self._keep(len(message))
            self._run(self._serve_large(message))
            return
        self._keep(cost_of_small(len(message)))
        try:
            result = method.handler(self.call, parse(method.request, message))
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

    async def _serve_stream(self) -> None:
        requests = self._requests()
        try:
            await self._send_all(self._method.handler(self.call, requests))
        finally:
            with suppress(RuntimeError):  # A task of the handler waits for requests.
                await requests.aclose()

    async def _send_all(self, answers: Any) -> None:
        """Send responses as fast as the client reads them."""
        try:
            async for answer in answers:
                if self._is_over:  # The handler has not noticed that it was cancelled.
                    return
                self._send(answer)
                while self._must_wait:
                    self._until_sent = self._outlet.new_waiter()
                    await self._until_sent
        finally:
            await answers.aclose()

    @property
    def _must_wait(self) -> bool:
        """Return whether the client has yet to read what was sent."""
        return not self._is_over and (self.output.waiting > _MUCH or self._outlet.is_choked)

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, GrpcError):
            self.end(error.status, error.message)
            return
        _log.error("%s: %s failed", self.call.peer, self._method.name, exc_info=error)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        self.end(GrpcStatus.INTERNAL, text)

    # Responses

    def _respond(self, response: Message) -> None:
        """Send the only response of a call, and end it."""
        message = response.SerializeToString()
        self._sent = len(message)
        outlet, number = self._outlet, self.output.number
        if outlet.windows.takes_at_once(len(message) + PREFIX_SIZE, self.output):
            outlet.write(responses.whole(number, message))
            self._close(GrpcStatus.OK)
        else:
            self._send_message(message)
            self.end(GrpcStatus.OK)

    def _send(self, response: Message) -> None:
        message = response.SerializeToString()
        self._sent += len(message)
        self._send_message(message)

    def _send_message(self, message: bytes) -> None:
        outlet = self._outlet
        if not self._has_headers:
            self._has_headers = True
            outlet.write(responses.headers(self.output.number))
        outlet.send_data(self.output, responses.prefixed(message))

    def end(self, status: GrpcStatus, message: str = "") -> None:
        """Send the end of the call."""
        if self._is_over:
            return
        number = self.output.number
        last = responses.trailers(number, status, message, is_first=not self._has_headers)
        if self.output.waiting:
            self.output.finish(last)
        else:
            self._outlet.write(last)
        self._close(status)

    def _close(self, status: GrpcStatus) -> None:
        """Forget the call once everything is sent."""
        self._is_over = self.is_answered = True
        self._drop()
        self._stop_task()
        self._outlet.note_finished(self._finished(status))
        if not self.output.waiting:
            self._release()

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
        return self._buffer is not None and self._buffer.is_incomplete

    def note_moved(self) -> None:
        """Note that some of what waited was sent."""
        if self._is_over and not self.output.waiting:
            self._release()
        else:
            _wake(self._until_sent)

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
            self._is_over = True
            self._drop()
            self._stop_task()
            self._outlet.note_finished(self._finished(GrpcStatus.CANCELLED))
        self._closed(self)

    def _finished(self, status: GrpcStatus) -> FinishedCall:
        seconds = perf_counter() - self._began
        return FinishedCall(self.call, status, seconds, self._received, self._sent)

    def _stop_task(self) -> None:
        """Cancel the handler; a future that it returned may belong to others, and is left."""
        task = self._task
        if task is None:
            return
        self._outlet.note_lingering()  # Until `_done` is called.
        if isinstance(task, asyncio.Task):
            task.cancel()


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
