"""One connection: frames in, commands to a handler, answers out in one write for each loop
round.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from time import perf_counter
from typing import Any, Final, Protocol, cast

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import ONEWAY, RESPONSE, Command, response
from mqlake.protocol.errors import FrameError
from mqlake.protocol.frames import decode, encode
from mqlake.protocol.signature import signed
from mqlake.remoting.awaited import AwaitedResponses
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.remoting.frame_reader import FrameReader, Frames
from mqlake.remoting.greed import REQUEST, greed_of, greed_of_requests
from mqlake.remoting.latencies import SUCCESS, UNWRITTEN, Latencies, Started
from mqlake.remoting.quotas.usage import Usage
from mqlake.remoting.rewritten import Rewritten
from mqlake.remoting.shared import Shared
from mqlake.remoting.tls.layer import TlsLayer

_log: Final = logging.getLogger("mqlake.remoting")

_NOWHERE: Final = ("unknown", 0)
_LAST_OPAQUE: Final = 2**31 - 1
_MUCH: Final = 1 << 18
"""Bytes that are written before the round of the loop is over."""
_PART: Final = 32
"""Commands that are answered before the rest of the received ones is served: meanwhile the other
side processes the answers.
"""
_UNTIMED: Final = 4
"""Commands after which the end of a turn is checked."""
_LARGE: Final = 1 << 15
"""Bytes of answers that are written before more is served."""
LONGEST_ANSWER: Final = (16 << 20) - (256 << 10)
"""Bytes of a response's body: RocketMQ's clients close a connection over which a longer frame than
16 MiB, with the header, arrives.
"""
_CLOSING: Final = 1.0
"""Seconds within which data that was written before a close must reach the other side."""

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


class Serve(Protocol):
    """Serves what arrives over a connection."""

    def __call__(self, peer: Peer, request: Command) -> None:
        """Serve a request."""
        ...

    def take_run(self, peer: Peer, frames: Frames) -> None:
        """Serve the first of these frames, as many as can be served in one call, perhaps none."""
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
        usages: what its address and its user use, while that is limited (`Quotas`). Requests are
            then served one by one.
        last_active: loop time of the last byte in or out.
        last_received: loop time of the last byte in.
        started: since when its requests are served; None if that is not measured.
        is_read_directly: whether `Shared.direct` reads it, and not its transport.
    """

    def __init__(self, serve: Serve, shared: Shared[Peer]) -> None:
        self.address = "not connected"
        self.local_port = 0
        self.is_relayed = False
        self.in_flight = 0
        self.bodies = 0
        self.held = 0
        self.usages: tuple[Usage, ...] = ()
        self.last_active = self.last_received = 0.0
        self.is_read_directly = False
        self.started = Started() if shared.latencies is not None else None
        self._serve = serve
        self._shared = shared
        self._limits = shared.limits
        self._room = shared.room
        self._reader = FrameReader(
            shared.limits, shared.decode_json, shared.runs, in_place=not shared.is_server
        )
        self._incoming: Iterator[Command | Frames] = iter(())
        self._has_incoming = False
        self._following: deque[bytes] = deque()
        self._out: list[bytes] = []
        self._out_size = 0
        self._awaited = AwaitedResponses()
        self._opaques = count(1)
        self._on_close: list[Callable[[Peer], object]] = []
        self._transport: asyncio.Transport | None = None
        self._tls: TlsLayer | None = None
        self._is_open = False
        self._is_choked = False
        self._choked_at = 0.0
        self._on_writable: deque[Callable[[], object]] = deque()
        self._is_serving = False
        self._is_waiting = False
        self._is_held_back = False
        self._suits = False
        self._after_part: list[Callable[[], object]] | None = None

    @property
    def is_closed(self) -> bool:
        """Return whether nothing that is sent now would arrive."""
        return not self._is_open

    @property
    def is_secure(self) -> bool:
        """Return whether the connection uses TLS."""
        return self._tls is not None

    def secure(self, layer: TlsLayer) -> None:
        """Read and write through TLS from now on."""
        self._transport = self._tls = layer

    @property
    def latencies(self) -> Latencies | None:
        """The durations of requests, for those who answer some without `answer`; None if they are
        not measured.
        """
        return self._shared.latencies

    @property
    def unsent(self) -> int:
        """Bytes that wait for the other side to read."""
        waiting = self._transport.get_write_buffer_size() if self._transport else 0
        return self._out_size + waiting

    @property
    def is_choked(self) -> bool:
        """Return whether the other side has yet to read what was written: further data would only
        be held here.
        """
        return self._is_choked

    def when_writable(self, callback: Callable[[], object]) -> None:
        """Call `callback` once the other side has read what was written, or at once if it has.

        It is never called if the connection is closed before.
        """
        if self._is_choked:
            self._on_writable.append(callback)
        elif self._is_open:
            callback()

    def send(self, command: Command | bytes) -> None:
        """Send a command, or a frame, together with everything else of this round of the loop.

        On a closed connection this does nothing: a client that is gone needs no answer. A
        connection whose other side does not read is closed at `Limits.write_buffer`.
        """
        if not self._is_open:
            return
        try:
            frame = command if isinstance(command, bytes) else encode(command)
        except FrameError as error:
            self.close(str(error))
            return
        if not self._out and not self._is_serving:
            self._shared.will_write(self)
        self._out.append(frame)
        self._out_size += len(frame)
        if self._out_size > _MUCH:
            self.flush()

    def send_rest(self, rest: bytes) -> None:
        """Send the rest of a frame of which the other side has the beginning."""
        if not self._is_open:
            return
        if not self._out and not self._is_serving:
            self._shared.will_write(self)
        self._out.insert(0, rest)
        self._out_size += len(rest)

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
            result = SUCCESS if self._is_open else UNWRITTEN
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
        if not self._is_open:
            raise ConnectionFailedError(f"{self.address}: the connection is closed")
        opaque = self._next_opaque()
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
        if self._shared.loop.time() - self.last_received >= seconds:
            self.close(f"nothing arrived for {seconds:g} s, while a request was not answered")

    def after_part(self, callback: Callable[[], object]) -> None:
        """Call `callback` once more of the data that arrived with this command is served.

        If no other connection is read meanwhile, this happens within this read; otherwise once this
        round of the loop is over, in one call for all of them.
        """
        if self._after_part is None:
            self._shared.loop.call_soon(callback)
        else:
            self._after_part.append(callback)

    def on_close(self, callback: Callable[[Peer], object]) -> None:
        """Call `callback` once the connection is closed; at once if it is already closed."""
        if self._transport is not None and not self._is_open:
            callback(self)
        else:
            self._on_close.append(callback)

    def close(self, reason: str = "") -> None:
        """Close the connection; data that was sent before is still written."""
        if not self._is_open or self._transport is None:
            return
        if reason:
            self._shared.complaints.say(self.address, reason)
        self._write()
        self._is_open = False
        self._leave()
        self._transport.close()
        self._shared.loop.call_later(_CLOSING, self._transport.abort)

    def flush(self) -> None:
        """Write what was sent in this round of the loop, if the other side reads."""
        if not self._out or self._transport is None:
            return
        if not self._is_choked:
            self._write()
        if self._is_choked:
            if self.unsent > self._limits.write_buffer:
                self._abort(f"it does not read: {self._limits.write_buffer} bytes wait for it")
            elif not self._is_serving:
                self._shared.budget.hold(self, self.measure())

    def _write(self) -> None:
        if not self._out or self._transport is None:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._out_size = 0
        self.last_active = self._shared.loop.time()
        for usage in self.usages:
            usage.size.add(len(data))
        self._transport.write(data)

    # Memory

    def measure(self) -> int:
        """Return the bytes that are held for the other side."""
        if not self._is_open:
            return 0
        reader = self._reader
        size = reader.unfinished + reader.untaken + self._out_size
        size += sum(map(len, self._following))
        size += self.in_flight * REQUEST + self.bodies
        if self._is_choked and self._transport is not None:
            size += self._transport.get_write_buffer_size()
        if self._tls is not None:
            size += self._tls.held
        return size

    def greed(self, now: float, grace: float) -> float:
        """Return how much is held for the other side, times how long it has stood still, cubed."""
        reader = self._reader
        greed = greed_of_requests(self.in_flight * REQUEST + self.bodies, grace)
        if self._is_held_back and grace:
            return greed
        greed += greed_of(reader.unfinished, reader.moved if grace else reader.begun, now, grace)
        if self._is_choked:
            greed += greed_of(self.unsent + reader.untaken, self._choked_at, now, grace)
        elif self._is_waiting:
            greed += greed_of(reader.untaken, self.last_active, now, grace)
        return greed

    def hold_back(self) -> None:
        """Stop reading."""
        self._is_held_back = True
        if self._is_open:
            self._stop_reading()

    def go_on(self) -> None:
        """Resume reading where it was stopped."""
        self._is_held_back = False
        self._reader.moved = self._shared.loop.time()
        if not self._is_waiting:
            self._read_on()

    def evict(self, reason: str) -> None:
        """Close the connection, and release what it holds."""
        self._abort(reason)

    def check_frame(self, began_before: float) -> None:
        """Close the connection if it began a frame before a loop time and has not completed it."""
        if self._reader.unfinished and self._reader.begun < began_before and not self._is_choked:
            limit = self._limits.frame_time
            self._abort(f"a frame that it began {limit:g} s ago is not complete")

    @property
    def socket_number(self) -> int:
        """The file descriptor of its socket; -1 if it has none."""
        transport = self._transport
        found = transport.get_extra_info("socket") if transport is not None else None
        return -1 if found is None else int(found.fileno())

    def pause_transport(self) -> None:
        """Let its transport read no more, because it is read directly from now on."""
        self.is_read_directly = True
        if self._transport is not None:
            self._transport.pause_reading()

    @property
    def unfinished(self) -> int:
        """Bytes that are held of a frame that is not complete."""
        return self._reader.unfinished

    def take_unfinished(self) -> bytes:
        """Return what is held of a frame that is not complete, and hold it no more."""
        found = self._reader.take_unfinished()
        if found:
            self._shared.budget.hold(self, self.measure())
        return found

    def note_left(self) -> None:
        """Note that it is no longer read directly."""
        self.is_read_directly = False

    def note_directly_read(self) -> None:
        """Update `last_active` of a connection that is read directly."""
        direct = self._shared.direct
        if self.is_read_directly and direct is not None:
            self.last_active = max(self.last_active, direct.last_read(self))

    # Callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Data that the system does not accept at once is noticed at once.
        self._transport.set_write_buffer_limits(high=0)
        # A connection that is already gone has no address.
        self.address = _address(transport.get_extra_info("peername") or _NOWHERE)
        self.local_port = int((transport.get_extra_info("sockname") or _NOWHERE)[1])
        self.last_active = self.last_received = self._shared.loop.time()
        self._is_open = True
        if self._shared.is_closed:  # It was accepted before the server stopped listening.
            self._transport.abort()
        elif (refusal := self._shared.opened(self)) is not None:
            self._abort(f"too many connections are open: {refusal}")

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the buffer for the next bytes: all connections share one, except for large
        frames.
        """
        return self._reader.room() or self._room()

    def buffer_updated(self, nbytes: int) -> None:
        if self._reader.room() is None:
            self.receive(bytes(self._shared.buffer[:nbytes]))
            if self._suits:
                self._join()
            return
        now = self.last_active = self.last_received = self._shared.loop.time()
        self._incoming, self._has_incoming = self._reader.fill(nbytes, now), True
        self._take_turn()

    def receive(self, data: bytes) -> None:
        """Serve data that has arrived, after what arrived before."""
        now = self.last_active = self.last_received = self._shared.loop.time()
        if self._has_incoming:
            self._following.append(data)
            return
        self._incoming, self._has_incoming = self._reader.feed(data, now), True
        self._take_turn()

    def note_suitable(self) -> None:
        """Offer this connection to `Shared.direct` once what was received is served."""
        self._suits = True

    def _join(self) -> None:
        """Be read directly from now on, if that is possible."""
        direct = self._shared.direct
        if direct is not None and self._may_change_reader:
            self._suits = False
            direct.join(self)

    def _take_turn(self) -> None:
        if self._shared.turns.take(self) and self._transport is not None:
            self._is_waiting = True
            self._stop_reading()
            self._shared.budget.hold(self, self.measure())

    @property
    def may_be_read_directly(self) -> bool:
        """Return whether nothing waits that must be served, written or refused before what arrives
        next, and what arrives needs neither decryption nor a count.
        """
        return self._may_change_reader and not self._reader.unfinished

    @property
    def _may_change_reader(self) -> bool:
        """Return the same, whatever is held of a frame that is not complete."""
        limits = self._limits
        return (
            self._is_open
            and self._tls is None
            and not self.usages
            and not (self._is_choked or self._is_waiting or self._is_held_back)
            and not self._has_incoming
            and self.in_flight < limits.in_flight
            and self.bodies <= limits.bodies
        )

    def read_indirectly(self) -> None:
        """Let its transport read it again, unless something must be waited for."""
        direct = self._shared.direct
        if self.is_read_directly and direct is not None:
            direct.leave(self)
            if not self._is_waiting:
                self._read_on()

    def _stop_reading(self) -> None:
        direct = self._shared.direct
        if self.is_read_directly and direct is not None:
            direct.leave(self)
        elif self._transport is not None:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Stop reading requests of a client that does not read the answers."""
        self._is_choked = True
        self._choked_at = self._shared.loop.time()
        if self._shared.is_server:
            self._stop_reading()

    def resume_writing(self) -> None:
        self._is_choked = False
        self.flush()
        while self._on_writable and not self._is_choked:
            self._on_writable.popleft()()
        if self._is_choked or not self._is_open:
            return
        self._shared.budget.hold(self, self.measure())
        if self._shared.is_server and not self._is_waiting:
            self._is_waiting = True
            self._shared.turns.wait(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._is_open = False
        self._leave()
        self._release()
        self._awaited.fail(f"{self.address}: the connection was lost")
        self._shared.lost(self)
        for callback in self._on_close:
            callback(self)
        self._on_close.clear()

    def serve(self, until: float) -> bool:
        """Serve what has arrived until a time of `perf_counter`; return whether there is more.

        It ends earlier if the other side has too much to read, and then waits until that is read.
        """
        self._after_part = [] if self._shared.last_read is self else None
        self._shared.last_read = self
        self._is_serving = True
        has_more, fault = False, ""
        try:
            has_more = self._serve_incoming(until)
        except FrameError as error:
            fault = str(error)
        except Exception as error:  # noqa: BLE001 (those who wait for their turn are served)
            _log.error("%s: serving it failed", self.address, exc_info=error)
            fault = f"serving it failed: {type(error).__name__}: {error}"
        self._end_part()
        self._after_part = None
        self._is_serving = False
        if fault:
            self.close(fault)
        if (size := self.measure()) != self.held:
            self._shared.budget.hold(self, size)
        if has_more and self._is_open:
            return True
        if self._is_waiting:
            self._is_waiting = False
            self._read_on()
            if self._suits:
                self._join()
        return False

    def _serve_incoming(self, until: float) -> bool:
        number = 0
        while not self._must_stop():
            command = next(self._incoming, None)
            if command is None:
                if not self._following:
                    self._has_incoming = False
                    return False
                self._incoming = self._reader.feed(self._following.popleft(), self.last_received)
                continue
            is_run = isinstance(command, Frames)
            if isinstance(command, Frames):
                self._serve.take_run(self, command)
            elif command.flag & RESPONSE:
                self._awaited.resolve(command)
            else:
                self._serve(self, command)
            number += 1
            if not number % _PART or self._out_size > _LARGE:
                self._end_part()
            if (is_run or not number % _UNTIMED) and perf_counter() >= until:
                return True
        return False

    def _must_stop(self) -> bool:
        return not self._is_open or (self._is_choked and self._shared.is_server)

    def _leave(self) -> None:
        """Let nobody read it directly: its socket is about to be closed."""
        if self.is_read_directly and self._shared.direct is not None:
            self._shared.direct.leave(self)

    def _read_on(self) -> None:
        if self.is_read_directly:
            return
        if not self._is_held_back and not self._must_stop() and self._transport is not None:
            self._transport.resume_reading()

    def _end_part(self) -> None:
        """Run the callbacks at the end of this part, and write the answers."""
        if self._after_part:
            callbacks, self._after_part = self._after_part, []
            for callback in callbacks:
                try:
                    callback()
                except Exception as error:  # noqa: BLE001 (as in `serve`)
                    _log.error("%s: the end of a part failed", self.address, exc_info=error)
        if self._out:
            self.flush()

    def _abort(self, reason: str) -> None:
        if not self._is_open:
            return
        self._shared.complaints.say(self.address, reason)
        self._is_open = False
        self._leave()
        self._release()
        if self._transport is not None:
            self._transport.abort()

    def _release(self) -> None:
        """Release what arrived, and what was to be written."""
        self._reader.clear()
        self._incoming, self._has_incoming = iter(()), False
        self._following.clear()
        self._out.clear()
        self._out_size = 0
        self._on_writable.clear()

    def _next_opaque(self) -> int:
        opaque = next(self._opaques)
        if opaque == _LAST_OPAQUE:
            self._opaques = count(1)
        return opaque


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
