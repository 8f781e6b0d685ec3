"""Bytes of a connection to commands (docs/formats/remoting.md).

Upstream: `NettyDecoder`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from mqlake.protocol import binary_header, json_header
from mqlake.protocol.binary_fields import START_SIZE
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.errors import FrameError
from mqlake.protocol.frames import LENGTH_OF_HEADER, LENGTHS, header_at
from mqlake.remoting.limits import Limits

_BINARY: Final = int(Serialization.ROCKETMQ)
_JSON: Final = int(Serialization.JSON)
_TLS_HANDSHAKE: Final = 0x16
_BETWEEN_RUNS: Final = 8
"""Frames that are read one by one, once no run begins, before a run is asked for again."""

_PROGRESS: Final = 65_536
"""Bytes that must arrive before a frame counts as progressing."""

_LARGE: Final = 2 << 20
"""Bytes of a frame in which no runs are looked for."""

_IN_PLACE: Final = 1 << 17
"""Bytes of a frame that is received where it is decoded, if that is wanted."""

_MOST_KEPT: Final = 4 << 20
"""Bytes of a buffer that is kept for the next large frame. The memory budget does not count it."""

_JSON_CODE: Final = b'{"code":'
"""What a header in JSON begins with, before the request code and a comma."""
_LONGEST_CODE: Final = 6
_NUMBERS: Final = struct.Struct(">ii")
"""The opaque and the flag of a binary header, which begin at `_NUMBERS_AT`."""
_NUMBERS_AT: Final = 5

RunKind = tuple[int, int]
"""The serialization and the request code of frames of which many may be served in one call."""


class Frames:
    """Whole frames, consecutively, of which the first has a code.

    Attributes:
        data: in which they are; what follows them may be anything.
        at: where the first one begins. Whoever serves some moves it after them.
        code: the first one's request code.
    """

    __slots__ = ("_first", "at", "code", "data")

    def __init__(self, data: bytes, at: int, code: int) -> None:
        self.data, self.at, self.code = data, at, code
        self._first: Command | None = None

    @property
    def first(self) -> Command:
        """The first frame's request: its code and its fields, and in binary its opaque and flag.

        The fields are decoded when they are asked for: checks that ask only for the code need not
        wait for that.

        Raises:
            FormatError: it has no such header.
        """
        if self._first is None:
            header = header_at(self.data, self.at)
            kind = self.data[self.at + 4]
            opaque = flag = 0
            if kind == _BINARY:
                if len(header) < START_SIZE:
                    raise FrameError(f"a binary header of {len(header)} bytes")
                opaque, flag = _NUMBERS.unpack_from(header, _NUMBERS_AT)
            self._first = Command(self.code, opaque, flag, encoded=header, serialization=kind)
        return self._first


class FrameReader:
    """Cuts the bytes of one connection into commands. Does no I/O.

    Args:
        runs: which frames may be served many at once.
        in_place: keep a buffer for the rest of a large frame, so that it is not copied until it is
            whole. That takes the memory before the bytes are there: not for a server, whose clients
            may say that a frame is large and never send it.

    Attributes:
        untaken: bytes that are held until all commands in them are taken.
        begun: when the frame began that is not complete; the time that `feed` was given.
        moved: when that frame last progressed.
    """

    def __init__(
        self,
        limits: Limits,
        decode_json: Callable[[bytes], Command] = json_header.decode,
        runs: Iterable[RunKind] = (),
        *,
        in_place: bool = False,
    ) -> None:
        self._limits = limits
        self._decode_json = decode_json
        kinds = list(runs)
        self._runs = {code.to_bytes(2): code for kind, code in kinds if kind == _BINARY}
        self._json_runs = {b"%d" % code: code for kind, code in kinds if kind == _JSON}
        self._rest = bytearray()
        self._need = 0
        self._in_place = in_place
        self._buffer = bytearray()
        self._filled = 0
        self.untaken = 0
        self.begun = self.moved = 0.0
        self._counted = 0

    @property
    def unfinished(self) -> int:
        """Bytes held of a frame that is not complete."""
        return self._need if self._filled else len(self._rest)

    def note_moved(self, now: float) -> None:
        """Count an incomplete frame as progressing: it could not, because it was not read."""
        self.moved = now

    def clear(self) -> None:
        """Release what is held of a frame that is not complete."""
        self._rest, self._buffer, self._filled = bytearray(), bytearray(), 0
        self.untaken = 0

    def take_unfinished(self) -> bytes:
        """Return what is held of a frame that is not complete, and hold it no more."""
        found = bytes(self._buffer[: self._filled]) if self._filled else bytes(self._rest)
        self.clear()
        return found

    def room(self) -> memoryview | None:
        """Return where the rest of a large frame is to be received, before a call of `fill`.

        None if there is no such frame: then `feed` takes what is received.
        """
        return memoryview(self._buffer)[self._filled : self._need] if self._filled else None

    def fill(self, count: int, now: float = 0.0) -> Iterator[Command | Frames]:
        """Return the command that is complete once so many bytes are in `room`, as `feed` does."""
        self._filled += count
        if self._filled < self._need:
            self._note_progress(self._filled, now)
            return iter(())
        whole, self._filled = memoryview(self._buffer)[: self._need], 0
        if len(self._buffer) > _MOST_KEPT:
            self._buffer = bytearray()
        self.untaken = self._need
        return self._cut(whole, now)

    def feed(self, data: bytes, now: float = 0.0) -> Iterator[Command | Frames]:
        """Return the commands that `data` completes; keep what is left for the next call.

        They are to be taken, all of them, before the next call. Where a run may begin, the frames
        come first: what is served of them does not come as commands.

        Raises:
            FrameError: on taking: what comes next is no frame; nothing more can be read.
        """
        if self._rest:
            self._rest += data
            size = len(self._rest)
            if size < self._need:
                self._note_progress(size, now)
                return iter(())
            whole, self._rest = self._rest, bytearray()
            self.untaken = size
            # The frame is copied once only if it is large: that takes milliseconds.
            return self._cut(bytes(whole) if size < _LARGE else memoryview(whole), now)
        self.untaken = len(data)
        return self._cut(data, now)

    def _cut(self, data: bytes | memoryview, now: float) -> Iterator[Command | Frames]:
        at, end = 0, len(data)
        has_runs = bool(self._runs or self._json_runs) and isinstance(data, bytes)
        one_by_one = 0
        while end - at >= LENGTHS.size:
            length, header_length = LENGTHS.unpack_from(data, at)
            kind = header_length >> 24
            header_length &= LENGTH_OF_HEADER
            if header_length + 4 > length or length > self._limits.frame:
                raise FrameError(self._reason(bytes(data[at : at + 4]), length, header_length))
            if header_length > self._limits.header:
                raise FrameError(
                    f"a header of {header_length} bytes, the limit is {self._limits.header}"
                )
            header_at = at + LENGTHS.size
            body_at, following = header_at + header_length, at + 4 + length
            if following > end:
                self._need = following - at
                break
            if has_runs and at >= one_by_one:
                assert isinstance(data, bytes)
                code = self._code_of_run(kind, data, header_at)
                if code is not None:
                    frames = Frames(data, at, code)
                    yield frames
                    if frames.at > at:
                        at = frames.at
                        continue
                    one_by_one = at + _BETWEEN_RUNS * length
            command = self._decode(kind, bytes(data[header_at:body_at]))
            command.body = bytes(data[body_at:following])
            at = following
            yield command
        else:
            self._need = LENGTHS.size
        self.untaken = 0
        self._counted = end - at
        self.begun = self.moved = now
        if self._in_place and self._need >= _IN_PLACE:
            if len(self._buffer) < self._need:
                self._buffer = bytearray(self._need)
            self._filled = self._counted
            self._buffer[: self._filled] = memoryview(data)[at:]
        else:
            self._rest += data[at:]

    def _note_progress(self, size: int, now: float) -> None:
        if size - self._counted >= _PROGRESS:
            self.moved, self._counted = now, size

    def _code_of_run(self, kind: int, data: bytes, at: int) -> int | None:
        """Return the code of the header at a position, None if no run begins with it."""
        if kind == _BINARY:
            return self._runs.get(data[at : at + 2])
        if kind != _JSON or not self._json_runs or not data.startswith(_JSON_CODE, at):
            return None
        at += len(_JSON_CODE)
        end = data.find(b",", at, at + _LONGEST_CODE)
        return None if end < 0 else self._json_runs.get(data[at:end])

    def _decode(self, kind: int, header: bytes) -> Command:
        if kind == _JSON:
            return self._decode_json(header)
        if kind == _BINARY:
            return binary_header.decode(header)
        raise FrameError(f"a header of an unknown serialization, {kind}")

    def _reason(self, start: bytes, length: int, header_length: int) -> str:
        if start[0] == _TLS_HANDSHAKE:
            return "a TLS handshake, and this port does not use TLS (tls.server.mode)"
        if start.isascii() and start.decode().isprintable():
            return f"no RocketMQ frame: it begins with {start.decode()!r}"
        if length > self._limits.frame:
            return f"a frame of {length} bytes, the limit is {self._limits.frame}"
        return f"a header of {header_length} bytes in a frame of {length}"
