"""One connection, as handlers see it: answers, requests of this side, and its end.

What arrives passes through its `Inlet`; what is sent, through its `FrameWriter`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, cast

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import ONEWAY, Command, response
from mqlake.protocol.errors import FrameError
from mqlake.protocol.frames import decode, encode
from mqlake.protocol.signature import signed
from mqlake.remoting.awaited import AwaitedResponses
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.remoting.greed import REQUEST, greed_of_requests
from mqlake.remoting.latencies import SUCCESS, UNWRITTEN, Latencies, Started
from mqlake.remoting.quotas.usage import Usage
from mqlake.remoting.rewritten import Rewritten
from mqlake.remoting.shared import Shared
from mqlake.remoting.stream.frame_writer import FrameWriter
from mqlake.remoting.stream.inlet import Inlet, Serve
from mqlake.remoting.stream.wire import Wire
from mqlake.remoting.tls.layer import TlsLayer

_NOWHERE: Final = ("unknown", 0)
_MUCH: Final = 1 << 18
"""Bytes that are written before the round of the loop is over."""
LONGEST_ANSWER: Final = (16 << 20) - (256 << 10)
"""Bytes of a response's body: RocketMQ's clients close a connection over which a longer frame than
16 MiB, with the header, arrives.
"""
_SILENT: Final = 2.0
"""Seconds that a request must have waited before its connection counts as lost."""


class Request(Protocol):
    """A request that writes its own frame."""

    @property
    def code(self) -> int:
        """A code of `RequestCode`."""
        ...

    def frame(self, opaque: int) -> bytes:
        """Return its frame under a number."""
        ...


class Peer(asyncio.BufferedProtocol):
    """The other side of a connection, as handlers see it.

    Attributes:
        address: "ip:port" of the other side.
        local_port: the local port.
        is_relayed: whether a proxy has yet to name its client (`ProxyDetection`).
        in_flight: requests of the other side that wait for `answer`.
        bodies: the total size of their bodies, in bytes.
        held: bytes of memory that are counted as held for the other side.
        started: since when its requests are served; None if that is not measured.
        usages: what its address and its user use, while that is limited (`Quotas`). Requests are
            then served one by one.
        inlet: what it sends, until that is served.
    """

    def __init__(self, serve: Serve[Peer], shared: Shared[Peer]) -> None:
        self.address = "not connected"
        self.local_port = 0
        self.is_relayed = False
        self.in_flight = 0
        self.bodies = 0
        self.held = 0
        self.usages: tuple[Usage, ...] = ()
        self.started = Started() if shared.latencies is not None else None  # pyright: ignore[reportGeneralTypeIssues]
        self._shared, self._limits = shared, shared.limits
        self._wire = Wire(shared.loop)
        self._writer = FrameWriter(self._wire)
        self._awaited = AwaitedResponses()
        self._on_close: list[Callable[[Peer], object]] = []
        self.inlet = Inlet(self._wire, self._writer, shared, serve, self._awaited.resolve)

    @property
    def is_closed(self) -> bool:
        """Return whether nothing that is sent now would arrive."""
        return not self._wire.is_open

    @property
    def is_secure(self) -> bool:
        """Return whether the connection uses TLS."""
        return self._wire.tls is not None

    def secure(self, layer: TlsLayer) -> None:
        """Read and write through TLS from now on."""
        self._wire.secure(layer)

    @property
    def latencies(self) -> Latencies | None:
        """The durations of requests, for those who answer some without `answer`; None if they are
        not measured.
        """
        return self._shared.latencies

    @property
    def last_active(self) -> float:
        """The loop time of the last byte in or out."""
        return self._wire.last_active

    @property
    def socket_number(self) -> int:
        """The file descriptor of its socket; -1 if it has none."""
        return self._wire.socket_number

    @property
    def unsent(self) -> int:
        """Bytes that wait for the other side to read."""
        return self._writer.unsent

    @property
    def is_choked(self) -> bool:
        """Return whether the other side has yet to read what was written: further data would only
        be held here.
        """
        return self._writer.is_choked

    def when_writable(self, callback: Callable[[], object]) -> None:
        """Call `callback` once the other side has read what was written, or at once if it has.

        It is never called if the connection is closed before.
        """
        self._writer.when_writable(callback)

    def send(self, command: Command | bytes) -> None:
        """Send a command, or a frame, together with everything else of this round of the loop.

        On a closed connection this does nothing: a client that is gone needs no answer. A
        connection whose other side does not read is closed at `Limits.write_buffer`.
        """
        if not self._wire.is_open:
            return
        try:
            frame = command if isinstance(command, bytes) else encode(command)
        except FrameError as error:
            self.close(str(error))
            return
        writer = self._writer
        if writer.add(frame) and not self.inlet.is_serving:
            self._shared.will_write(self)
        if writer.size > _MUCH:
            self.flush()

    def send_at_once(self, frame: bytes) -> None:
        """Send a frame now, not at the end of this round of the loop, after all that was sent."""
        if self._wire.is_open:
            self._writer.add(frame)
            self.flush()

    def send_rest(self, rest: bytes) -> None:
        """Send the rest of a frame of which the other side has the beginning."""
        if self._wire.is_open and self._writer.add_rest(rest) and not self.inlet.is_serving:
            self._shared.will_write(self)

    def answer(self, request: Command, answer: Command | bytes) -> None:
        """Send the response, or its frame, to a request that was not answered at once."""
        if request.flag & ONEWAY:
            return
        if self.in_flight:
            self.wait(-1, -len(request.body))
        if isinstance(request, Rewritten):
            answer = request.restore(answer)
        if isinstance(answer, Command) and len(answer.body) > LONGEST_ANSWER:
            answer = _too_long(request, len(answer.body))
        started, latencies = self.started, self._shared.latencies
        if started is not None and latencies is not None:
            # As `note_answer` does; a call would take longer.
            code = answer.code if isinstance(answer, Command) else ResponseCode.SUCCESS
            result = SUCCESS if self._wire.is_open else UNWRITTEN
            latencies.answered(request, code, result, started, self.address)
        self.send(answer)

    def note_answer(self, request: Command, answer: object, result: str) -> None:
        """Note how long a request took until now, if that is measured.

        Args:
            answer: a command, or anything else for one that says success.
        """
        latencies = self._shared.latencies
        if latencies is not None and self.started is not None:
            code = answer.code if isinstance(answer, Command) else ResponseCode.SUCCESS
            latencies.answered(request, code, result, self.started, self.address)

    def rest(self, seconds: float) -> None:
        """Serve and read nothing of the other side for so long. What waits is answered."""
        self.inlet.rest(seconds)

    def suspend(self, request: Command) -> None:
        """Note that a request waits for messages."""
        if self.started is not None:
            self.started.suspend(request.opaque)

    def wait(self, count: int, size: int = 0) -> None:
        """Count requests that now wait for their answer, or no longer do (negative numbers).

        Args:
            size: the bytes of their bodies.
        """
        self.in_flight += count
        self.bodies += size
        for usage in self.usages:
            usage.in_flight += count

    def drop_body(self, request: Command) -> None:
        """Release the body of a request that waits for its answer and no longer needs the body."""
        if not request.flag & ONEWAY:
            self.bodies -= len(request.body)
        request.body = request.encoded = b""

    async def request(
        self,
        command: Command | Request,
        timeout: float,  # noqa: ASYNC109 (the error says how long it was)
    ) -> Command:
        """Send a request and return its response, whatever its code.

        Raises:
            ConnectionFailedError: the connection is closed, or was closed before the response
                arrived.
            RequestTimeoutError: no response within `timeout` seconds.
        """
        if not self._wire.is_open:
            raise ConnectionFailedError(f"{self.address}: the connection is closed")
        opaque = self._awaited.next_opaque()
        if self._shared.credentials is not None:
            command = signed(as_command(command), self._shared.credentials)
        if isinstance(command, Command):
            command.opaque = opaque
            self.send(command)
        else:
            self.send(command.frame(opaque))
        response = self._awaited.expect(self._shared.loop, opaque, timeout)
        try:
            return await response
        except RequestTimeoutError:
            self._close_if_silent(timeout)
            raise RequestTimeoutError(
                f"{self.address}: no answer to request {command.code} within {timeout:g} s"
            ) from None
        finally:
            self._awaited.forget(opaque)

    def oneway(self, command: Command) -> None:
        """Send a request that needs no response, signed as `request` signs."""
        command.flag |= ONEWAY
        credentials = self._shared.credentials
        self.send(command if credentials is None else signed(command, credentials))

    def _close_if_silent(self, seconds: float) -> None:
        """Close a client's connection if nothing arrived while a request waited so many seconds.

        The other side may have lost the connection without notice, for example through a power
        loss. Then only a new connection is answered.
        """
        if self._shared.is_server or seconds < _SILENT:
            return
        if self._shared.loop.time() - self._wire.last_received >= seconds:
            self.close(f"nothing arrived for {seconds:g} s, while a request was not answered")

    def after_part(self, callback: Callable[[], object]) -> None:
        """Call `callback` once more of what arrived with this command is served: see `Inlet`."""
        self.inlet.after_part(callback)

    def on_close(self, callback: Callable[[Peer], object]) -> None:
        """Call `callback` once the connection is closed; at once if it is already closed."""
        if self._wire.is_over:
            callback(self)
        else:
            self._on_close.append(callback)

    def close(self, reason: str = "") -> None:
        """Close the connection; data that was sent before is still written."""
        if not self._wire.is_open:
            return
        if reason:
            self._shared.complaints.say(self.address, reason)
        self._write()
        self._wire.end()
        self.inlet.leave()
        self._wire.close()

    def flush(self) -> None:
        """Write what was sent in this round of the loop, if the other side reads."""
        if not self._writer.size:
            return
        if not self._writer.is_choked:
            self._write()
        if self._writer.is_choked:
            if self.unsent > self._limits.write_buffer:
                self._abort(f"it does not read: {self._limits.write_buffer} bytes wait for it")
            elif not self.inlet.is_serving:
                self._shared.budget.hold(self, self.measure())

    def _write(self) -> None:
        size = self._writer.write()
        for usage in self.usages:
            usage.size.add(size)

    # Memory

    def measure(self) -> int:
        """Return the bytes that are held for the other side."""
        if not self._wire.is_open:
            return 0
        size = self.inlet.held + self._writer.held + self.in_flight * REQUEST + self.bodies
        return size if self._wire.tls is None else size + self._wire.tls.held

    def greed(self, now: float, grace: float) -> float:
        """Return how much is held for the other side, times how long it has stood still, cubed."""
        greed = greed_of_requests(self.in_flight * REQUEST + self.bodies, grace)
        if self.inlet.is_held_back and grace:
            return greed
        return greed + self.inlet.greed(now, grace) + self._writer.greed(now, grace)

    def hold_back(self) -> None:
        """Stop reading."""
        self.inlet.hold_back()

    def go_on(self) -> None:
        """Resume reading where it was stopped."""
        self.inlet.go_on()

    def evict(self, reason: str) -> None:
        """Close the connection, and release what it holds."""
        self._abort(reason)

    def check_frame(self, began_before: float) -> None:
        """Close the connection if it began a frame before a loop time and has not completed it."""
        if self.inlet.is_stuck(began_before):
            limit = self._limits.frame_time
            self._abort(f"a frame that it began {limit:g} s ago is not complete")

    @property
    def is_limited(self) -> bool:
        """Return whether its next request must be counted for a limit, or would be refused."""
        limits = self._limits
        is_full = self.in_flight >= limits.in_flight or self.bodies > limits.bodies
        return is_full or bool(self.usages)

    # Callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.inlet.begin(self)
        self._wire.begin(cast("asyncio.Transport", transport))
        # A connection that is already gone has no address.
        self.address = _address(transport.get_extra_info("peername") or _NOWHERE)
        self.local_port = int((transport.get_extra_info("sockname") or _NOWHERE)[1])
        if self._shared.is_closed:  # It was accepted before the server stopped listening.
            self._wire.abort()
        elif (refusal := self._shared.opened(self)) is not None:
            self._abort(f"too many connections are open: {refusal}")

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self.inlet.room()

    def buffer_updated(self, nbytes: int) -> None:
        self.inlet.fill(nbytes)

    def pause_writing(self) -> None:
        """Stop reading requests of a client that does not read the answers."""
        self._writer.choke(self._shared.loop.time())
        if self._shared.is_server:
            self.inlet.pause()

    def resume_writing(self) -> None:
        self._writer.unchoke()
        self.flush()
        self._writer.call_back()
        if self._wire.is_open and not self._writer.is_choked:
            self.inlet.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._wire.end()
        self.inlet.leave()
        self.inlet.end()
        self._writer.clear()
        self._awaited.fail(f"{self.address}: the connection was lost")
        self._shared.lost(self)
        for callback in self._on_close:
            callback(self)
        self._on_close.clear()

    def _abort(self, reason: str) -> None:
        if not self._wire.is_open:
            return
        self._shared.complaints.say(self.address, reason)
        self._wire.end()
        self.inlet.leave()
        self.inlet.clear()
        self._writer.clear()
        self._wire.abort()


def as_command(request: Command | Request) -> Command:
    """Return a request as a command, whose fields can be changed."""
    return request if isinstance(request, Command) else decode(request.frame(0))


def _too_long(request: Command, size: int) -> Command:
    """Return the answer that replaces one that no client would read."""
    remark = (
        f"the answer would have {size} bytes, and clients read at most {LONGEST_ANSWER}: ask for"
        " less, such as one topic or group"
    )
    return response(request, ResponseCode.SYSTEM_ERROR, remark=remark)


def _address(name: Sequence[Any]) -> str:
    host, port = name[:2]  # An IPv6 address has two more.
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
