"""What arrives over a connection: read, cut into commands, and served in turns."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Final, Generic, Protocol

from mqlake.protocol.command import RESPONSE, Command
from mqlake.protocol.errors import FrameError
from mqlake.remoting.greed import greed_of
from mqlake.remoting.shared import M, M_contra, Shared
from mqlake.remoting.stream.frame_reader import FrameReader, Frames
from mqlake.remoting.stream.frame_writer import FrameWriter
from mqlake.remoting.stream.wire import Wire
from mqlake.remoting.tls.layer import Decrypted

_log: Final = logging.getLogger("mqlake.remoting")

_PART: Final = 32
"""Commands that are answered before the rest of the received ones is served: meanwhile the other
side processes the answers.
"""
_UNTIMED: Final = 4
"""Commands after which the end of a turn is checked."""
_LARGE: Final = 1 << 15
"""Bytes of answers that are written before more is served."""


class Serve(Protocol[M_contra]):
    """Serves what arrives over a connection."""

    def __call__(self, peer: M_contra, request: Command) -> None:
        """Serve a request."""
        ...

    def take_run(self, peer: M_contra, frames: Frames) -> None:
        """Serve the first of these frames, as many as can be served in one call, perhaps none."""
        ...


class Inlet(Generic[M]):
    """What has arrived over one connection and is not served yet, and whether more is read.

    It is not read while it waits for its turn, while it holds too much memory, while it rests, and,
    at a server, while the other side does not read the answers. Either its transport or
    `Shared.direct` reads it.

    Args:
        wire: what it is read from.
        writer: writes the answers.
        serve: serves requests.
        resolve: receives responses.

    Attributes:
        is_read_directly: whether `Shared.direct` reads it, and not its transport.
        is_held_back: whether it is not read because memory is short.
        is_serving: whether requests are being served; their answers are then written at the end.
    """

    def __init__(
        self,
        wire: Wire,
        writer: FrameWriter,
        shared: Shared[M],
        serve: Serve[M],
        resolve: Callable[[Command], object],
    ) -> None:
        self._wire, self._writer, self._shared = wire, writer, shared
        self._serve, self._resolve = serve, resolve
        self._peer: M | None = None
        self._reader = FrameReader(
            shared.limits, shared.decode_json, shared.runs, in_place=not shared.is_server
        )
        self._incoming: Iterator[Command | Frames] = iter(())
        self._has_incoming = False
        self._following: deque[bytes] = deque()
        self.is_read_directly = self.is_held_back = self.is_serving = False
        self._is_waiting = self._is_resting = False
        self._suits = False
        self._after_part: list[Callable[[], object]] | None = None

    def begin(self, peer: M) -> None:
        """Serve what arrives from now on as that of a connection."""
        self._peer = peer

    def end(self) -> None:
        """Release everything, and serve nothing any more."""
        self.clear()
        self._peer = None

    def clear(self) -> None:
        """Release what has arrived."""
        self._reader.clear()
        self._incoming, self._has_incoming = iter(()), False
        self._following.clear()

    # Receiving

    def room(self) -> memoryview:
        """Return the buffer for the next bytes: all connections share one, except for large
        frames.
        """
        return self._reader.room() or self._shared.room()

    def fill(self, size: int) -> None:
        """Serve the bytes that were received into `room`."""
        if self._reader.room() is None:
            self.receive(bytes(self._shared.buffer[:size]))
            if self._suits:
                self._join()
            return
        now = self._wire.note_received()
        self._incoming, self._has_incoming = self._reader.fill(size, now), True
        self._take_turn()

    def receive(self, data: bytes) -> None:
        """Serve data that has arrived, after what arrived before."""
        now = self._wire.note_received()
        if self._has_incoming:
            self._following.append(data)
            return
        self._incoming, self._has_incoming = self._reader.feed(data, now), True
        self._take_turn()

    def _take_turn(self) -> None:
        if self._shared.turns.take(self):
            self._is_waiting = True
            self.pause()
            self._note_held()

    # Serving

    def serve(self, until: float) -> bool:
        """Serve what has arrived until a time of `perf_counter`; return whether there is more.

        It ends earlier if the other side has too much to read, and then waits until that is read.
        """
        peer, shared = self._peer, self._shared
        if peer is None:
            return False
        self._after_part = [] if shared.last_read is peer else None
        shared.note_reading(peer)
        self.is_serving = True
        has_more, fault = False, ""
        try:
            has_more = self._serve_incoming(peer, until)
        except FrameError as error:
            fault = str(error)
        except Exception as error:  # noqa: BLE001 (those who wait for their turn are served)
            _log.error("%s: serving it failed", peer.address, exc_info=error)
            fault = f"serving it failed: {type(error).__name__}: {error}"
        self._end_part(peer)
        self._after_part = None
        self.is_serving = False
        if fault:
            peer.close(fault)
        self._note_held()
        if has_more and self._wire.is_open:
            return True
        if self._is_waiting:
            self._is_waiting = False
            self._read_on()
            if self._suits:
                self._join()
        return False

    def _serve_incoming(self, peer: M, until: float) -> bool:
        number, writer = 0, self._writer
        while not self._must_stop():
            command = next(self._incoming, None)
            if command is None:
                if not self._following:
                    self._has_incoming = False
                    return False
                data = self._following.popleft()
                self._incoming = self._reader.feed(data, self._wire.last_received)
                continue
            is_run = isinstance(command, Frames)
            if isinstance(command, Frames):
                self._serve.take_run(peer, command)
            elif command.flag & RESPONSE:
                self._resolve(command)
            else:
                self._serve(peer, command)
            number += 1
            if not number % _PART or writer.size > _LARGE:
                self._end_part(peer)
            if (is_run or not number % _UNTIMED) and perf_counter() >= until:
                return True
        return False

    def _must_stop(self) -> bool:
        if self._is_resting or not self._wire.is_open:
            return True
        return self._writer.is_choked and self._shared.is_server

    def after_part(self, callback: Callable[[], object]) -> None:
        """Call `callback` once more of the data that arrived with this command is served.

        If no other connection is read meanwhile, this happens within this read; otherwise once this
        round of the loop is over, in one call for all of them.
        """
        if self._after_part is None:
            self._shared.loop.call_soon(callback)
        else:
            self._after_part.append(callback)

    def _end_part(self, peer: M) -> None:
        """Run the callbacks at the end of this part, and write the answers."""
        if self._after_part:
            callbacks, self._after_part = self._after_part, []
            for callback in callbacks:
                try:
                    callback()
                except Exception as error:  # noqa: BLE001 (as in `serve`)
                    _log.error("%s: the end of a part failed", peer.address, exc_info=error)
        if self._writer.size:
            peer.flush()

    # Whether it is read

    def pause(self) -> None:
        """Read nothing for now."""
        if not self.leave():
            self._wire.pause_reading()

    def resume(self) -> None:
        """Continue, because the other side has read what was written, or after a rest."""
        self._note_held()
        if self._shared.is_server and not self._is_waiting:
            self._is_waiting = True
            self._shared.turns.wait(self)

    def rest(self, seconds: float) -> None:
        """Serve and read nothing for so long."""
        if not self._is_resting:
            self._is_resting = True
            self.pause()
            self._shared.loop.call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._is_resting = False
        if self._wire.is_open:
            self.resume()

    def hold_back(self) -> None:
        """Read nothing until `go_on`, because memory is short."""
        self.is_held_back = True
        if self._wire.is_open:
            self.pause()

    def go_on(self) -> None:
        """Resume reading where it was stopped."""
        self.is_held_back = False
        self._reader.note_moved(self._shared.loop.time())
        if not self._is_waiting:
            self._read_on()

    def _read_on(self) -> None:
        if not (self.is_read_directly or self.is_held_back or self._must_stop()):
            self._wire.resume_reading()

    # Who reads it

    @property
    def may_be_read_directly(self) -> bool:
        """Whether nothing waits that must be served, written or refused before what arrives next,
        and what arrives need not be counted.
        """
        return self._may_change_reader and not self._reader.unfinished

    @property
    def _may_change_reader(self) -> bool:
        """The same, whatever is held of a frame that is not complete."""
        return (
            self._wire.is_open
            and (self._wire.tls is None or self._wire.tls.is_drained)
            and not (self._writer.is_choked or self._is_waiting or self.is_held_back)
            and not self._is_resting
            and not self._has_incoming
            and self._peer is not None
            and not self._peer.is_limited
        )

    def note_suitable(self) -> None:
        """Offer this connection to `Shared.direct` once what was received is served."""
        self._suits = True

    def _join(self) -> None:
        """Be read directly from now on, if that is possible."""
        peer, direct = self._peer, self._shared.direct
        if direct is not None and peer is not None and self._may_change_reader:
            self._suits = False
            direct.join(peer)

    def receive_into(self, buffer: memoryview) -> Decrypted:
        """Receive and decrypt what has arrived over a connection with TLS that is read directly."""
        tls = self._wire.tls
        assert tls is not None
        return tls.receive_into(buffer)

    def take_unfinished(self) -> bytes:
        """Return what is held of a frame that is not complete, and hold it no more."""
        found = self._reader.take_unfinished()
        if found:
            self._note_held()
        return found

    def note_joined(self) -> None:
        """Let its transport read no more, because it is read directly from now on."""
        self.is_read_directly = True
        self._wire.pause_reading()

    def leave(self) -> bool:
        """Let nobody read it directly any more; return whether it was read so."""
        peer, direct = self._peer, self._shared.direct
        if not self.is_read_directly or peer is None or direct is None:
            return False
        direct.leave(peer)
        return True

    def note_left(self) -> None:
        """Note that it is no longer read directly."""
        self.is_read_directly = False

    def read_indirectly(self) -> None:
        """Let its transport read it again, unless something must be waited for."""
        if self.leave() and not self._is_waiting:
            self._read_on()

    def note_directly_read(self) -> None:
        """Note when it was last read, if it is read directly."""
        peer, direct = self._peer, self._shared.direct
        if self.is_read_directly and peer is not None and direct is not None:
            self._wire.note_active(direct.last_read(peer))

    # Memory

    @property
    def unfinished(self) -> int:
        """Bytes that are held of a frame that is not complete."""
        return self._reader.unfinished

    @property
    def held(self) -> int:
        """Bytes of memory that are held."""
        reader = self._reader
        return reader.unfinished + reader.untaken + sum(map(len, self._following))

    def greed(self, now: float, grace: float) -> float:
        """Return the greed of what has arrived (`greed_of`)."""
        reader = self._reader
        greed = greed_of(reader.unfinished, reader.moved if grace else reader.begun, now, grace)
        if self._writer.is_choked:
            greed += greed_of(reader.untaken, self._writer.choked_at, now, grace)
        elif self._is_waiting:
            greed += greed_of(reader.untaken, self._wire.last_active, now, grace)
        return greed

    def is_stuck(self, began_before: float) -> bool:
        """Return whether a frame began before a loop time and is still not complete, and not
        because the other side must read first.
        """
        reader = self._reader
        is_old = reader.unfinished > 0 and reader.begun < began_before
        return is_old and not self._writer.is_choked

    def _note_held(self) -> None:
        peer = self._peer
        if peer is not None and (size := peer.measure()) != peer.held:
            self._shared.budget.hold(peer, size)
