"""A connection to a broker in the same process: frames without a socket.

To the broker, it is a connection like all others: requests pass the same limits, checks and counts,
and the same compiled paths.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from typing import Final

from mqlake.protocol.command import RESPONSE, Command, Serialization
from mqlake.protocol.errors import FrameError
from mqlake.protocol.frames import decode, encode
from mqlake.proxy.brokers.port import Pushed
from mqlake.remoting.awaited import AwaitedResponses
from mqlake.remoting.connection import Peer, Request
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

_log: Final = logging.getLogger("mqlake.proxy")

_JSON: Final = int(Serialization.JSON)
_BINARY: Final = int(Serialization.ROCKETMQ)
_LAST_BINARY_CODE: Final = 2**15 - 1
_RUN: Final = 1 << 16
"""Bytes of requests that are passed on together."""


class BrokerLink(asyncio.Transport):
    """The connection of one client.

    Args:
        connect: creates the broker's side of a connection (`RemotingService.connect`).
        client_id: the client to which the broker's requests over this connection are passed; None
            for none.
        address: "ip:port" of the client.
        closed: called once the connection is closed.

    Raises:
        ConnectionFailedError: the broker refuses the connection.
    """

    def __init__(
        self,
        connect: Callable[[asyncio.Transport], Peer],
        client_id: str | None,
        address: str,
        pushed: Pushed,
        closed: Callable[[BrokerLink], object],
    ) -> None:
        super().__init__({"peername": _split(address)})
        self.client_id, self.address = client_id, address
        self._pushed, self._closed = pushed, closed
        self._loop = asyncio.get_running_loop()
        self._awaited = AwaitedResponses()
        # By numbers that tell in which order they came.
        self._waiting: dict[int, bytes] = {}
        self._numbers = count()
        self._in_flight, self._is_used = 0, True
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_paused = self._is_draining = self._is_lost = self._is_polling = False
        self._polled: Command | None = None
        self._peer = connect(self)

    @property
    def is_closed(self) -> bool:
        """Whether requests would not be answered."""
        return self._is_lost or self._peer.is_closed

    async def request(
        self,
        command: Command | Request,
        seconds: float,
    ) -> Command:
        """Return the response to a request, whatever its code.

        Raises:
            ConnectionFailedError: the connection is closed.
            RequestTimeoutError: there is no response in time.
        """
        if self.is_closed:
            raise ConnectionFailedError(f"{self.address}: the broker has closed the connection")
        opaque = self._awaited.next_opaque()
        if isinstance(command, Command):
            command.opaque = opaque
            command.serialization = _BINARY if command.code <= _LAST_BINARY_CODE else _JSON
            frame = encode(command)
        else:
            frame = command.frame(opaque)
        found = self._awaited.expect(self._loop, opaque, seconds)
        self._in_flight += 1
        self._is_used, number = True, None
        try:
            number = self._send(frame)
            return await found
        except RequestTimeoutError:
            raise RequestTimeoutError(
                f"the broker has not answered request {command.code} within {seconds:g} s"
            ) from None
        finally:
            self._in_flight -= 1
            self._awaited.forget(opaque)
            if number is not None:  # If it still waits, nobody wants it any more.
                self._waiting.pop(number, None)

    async def poll(
        self, command: Command, seconds: float, late: Callable[[Command], None]
    ) -> Command:
        """Return the response to a request that may wait for messages, the only one meanwhile.

        If this fails or is cancelled, the connection is closed: otherwise the request would still
        wait, and receive messages.

        Args:
            late: receives the response if the broker has answered nevertheless.

        Raises:
            ConnectionFailedError: the connection is closed.
            RequestTimeoutError: there is no response in time.
        """
        self._is_polling = True
        try:
            return await self.request(command, seconds)
        except BaseException:
            self.end()
            if self._polled is not None:
                late(self._polled)
            raise
        finally:
            self._is_polling, self._polled = False, None

    def was_unused(self) -> bool:
        """Return whether nobody has used the connection since this was asked last."""
        is_used, self._is_used = self._is_used, False
        return not is_used and not self._in_flight

    def end(self) -> None:
        """Close the connection. What waits at the broker for an answer is dropped."""
        if not self._is_lost:
            self._peer.flush()  # The broker believes that these answers have arrived.
        self._lose()

    def _send(self, frame: bytes) -> int | None:
        """Pass a frame on; return the number under which it waits, None if it does not."""
        if not self._is_paused and not self._waiting:
            self._peer.inlet.receive(frame)
            return None
        self._waiting[number := next(self._numbers)] = frame
        return number

    # The broker's side writes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Receive whole frames."""
        frames, at = bytes(data), 0
        while at < len(frames):
            end = at + 4 + int.from_bytes(frames[at : at + 4])
            self._take(frames[at:end] if end - at < len(frames) else frames)
            at = end

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Receive whole frames."""
        for data in list_of_data:
            self.write(data)

    def _take(self, frame: bytes) -> None:
        command = decode(frame)
        if command.flag & RESPONSE:
            if self._is_polling:
                self._polled = command
            self._awaited.resolve(command)
        elif self.client_id is not None:
            task = self._loop.create_task(self._push(command))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _push(self, command: Command) -> None:
        """Pass a request of the broker to the client, and its response back."""
        try:
            answer = await self._pushed(command, self.client_id)
        except Exception:  # noqa: BLE001 (the broker is not answered, as by a client that is gone)
            _log.exception("%s: request %d of the broker failed", self.address, command.code)
            return
        if answer is None or command.is_oneway or self.is_closed:
            return
        answer.opaque, answer.flag = command.opaque, answer.flag | RESPONSE
        with suppress(FrameError):
            self._send(encode(answer))

    # A transport as the broker's side needs it

    def get_write_buffer_size(self) -> int:
        """Return 0: what is written has been received."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing."""

    def pause_reading(self) -> None:
        """Hold back requests."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Pass on the requests that were held back, once this round of the loop is over."""
        self._is_paused = False
        if self._waiting and not self._is_draining:
            self._is_draining = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._is_draining = False
        while self._waiting and not self._is_paused and not self.is_closed:
            self._peer.inlet.receive(self._taken())

    def _taken(self) -> bytes:
        """Return the first of the requests that wait, together: they are served in one run."""
        taken, size = list[int](), 0
        for number, frame in self._waiting.items():
            if taken and size + len(frame) > _RUN:
                break
            taken.append(number)
            size += len(frame)
        return b"".join([self._waiting.pop(number) for number in taken])

    def is_closing(self) -> bool:
        """Return whether the connection is closed."""
        return self._is_lost

    def close(self) -> None:
        """End the connection, because the broker closes it."""
        self._loop.call_soon(self._lose)

    def abort(self) -> None:
        """End the connection."""
        self.close()

    def _lose(self) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self._waiting.clear()
        self._awaited.fail(f"{self.address}: the broker has closed the connection")
        self._peer.connection_lost(None)
        for task in self._tasks:
            task.cancel()
        self._closed(self)


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port) if port.isascii() and port.isdigit() and len(port) < 6 else 0
