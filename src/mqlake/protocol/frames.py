"""Frames: commands to bytes of a connection and back (docs/formats/remoting.md).

Upstream: `NettyEncoder`, `RemotingCommand`.
"""

from __future__ import annotations

import struct
from typing import Final

from mqlake.protocol import binary_header, json_header
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.errors import FrameError

LENGTHS: Final = struct.Struct(">II")
"""How a frame begins: its length without these four bytes, then that of its header below the
serialization's byte."""
LENGTH_OF_HEADER: Final = 0xFFFFFF
"""Bits of the second word that are a length."""


def header_at(data: bytes, at: int) -> bytes:
    """Return the header of the frame at a position."""
    header_length = int.from_bytes(data[at + 5 : at + LENGTHS.size])
    return data[at + LENGTHS.size : at + LENGTHS.size + header_length]


def decode(frame: bytes) -> Command:
    """Return the command of a whole frame.

    Raises:
        FrameError: the header is malformed.
    """
    header = header_at(frame, 0)
    is_binary = frame[4] == Serialization.ROCKETMQ
    command = binary_header.decode(header) if is_binary else json_header.decode(header)
    command.body = frame[LENGTHS.size + len(header) :]
    return command


def encode(command: Command) -> bytes:
    """Return the frame of a command.

    Raises:
        FrameError: its header is longer than a frame can say (16 MiB).
    """
    binary = command.serialization == Serialization.ROCKETMQ
    header = binary_header.encode(command) if binary else json_header.encode(command)
    size, body = len(header), command.body
    if size > LENGTH_OF_HEADER:
        raise FrameError(f"a header of {size} bytes is too long for a frame")
    return b"".join(
        (LENGTHS.pack(4 + size + len(body), command.serialization << 24 | size), header, body)
    )
