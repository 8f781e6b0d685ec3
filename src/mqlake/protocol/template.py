"""Frames that differ in few places: encoded once, filled in many times."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from operator import mod
from typing import Final, Protocol

import msgspec

from mqlake.protocol import binary_fields, binary_header, json_header
from mqlake.protocol.command import Command, Serialization

_LENGTHS: Final = struct.Struct(">II")
_OPAQUE: Final = 1_234_567_890
_GAP: Final = "\x00gap"
_MAX_SHAPES: Final = 1024


class FrameTemplate(Protocol):
    """The frame of a command, without its opaque, some of its fields, and its body."""

    def fill(self, *values: object, body: int = 0) -> bytes:
        """Return a frame up to its body.

        Args:
            body: its number of bytes.
            values: those of the gaps, in order, then the opaque. Texts are written unescaped: in a
                binary header they must be ASCII, in JSON valid between quotes.
        """
        ...


def frame_template(response: Command, gaps: Mapping[str, str]) -> FrameTemplate:
    """Return the template of a response, or of a request, with gaps in it.

    Args:
        gaps: the names of further fields, and the formats of their values ("%d", "%s" …).
    """
    is_binary = response.serialization == Serialization.ROCKETMQ
    return _BinaryTemplate(response, gaps) if is_binary else _JsonTemplate(response, gaps)


class _JsonTemplate:
    def __init__(self, response: Command, gaps: Mapping[str, str]) -> None:
        marks = {name: f"{_GAP}{number}." for number, name in enumerate(gaps)}
        fields = {**response.fields, **marks}
        sample = msgspec.structs.replace(response, known_fields=fields, opaque=_OPAQUE)
        text = json_header.encode(sample).decode().replace("%", "%%")
        # Inside a text, quotes have a backslash before them, so this matches only the fields.
        text = text.replace(f'"opaque":{_OPAQUE}', '"opaque":%d', 1)
        for name, form in gaps.items():
            text = text.replace(msgspec.json.encode(marks[name]).decode(), f'"{form}"')
        self._text = text

    def fill(self, *values: object, body: int = 0) -> bytes:
        header = (self._text % values).encode()
        size = len(header)
        return _LENGTHS.pack(size + 4 + body, size) + header


class _BinaryTemplate:
    """A binary header has lengths before its values, so each set of lengths has its own shape.

    A shape is the length of a frame without a body, and what follows that length, as Latin-1.
    """

    def __init__(self, response: Command, gaps: Mapping[str, str]) -> None:
        self._response, self._gaps = response, gaps
        self._forms = tuple(gaps.values())
        self._shapes: dict[tuple[int, ...], tuple[int, str]] = {}

    def fill(self, *values: object, body: int = 0) -> bytes:
        opaque = values[-1]
        assert isinstance(opaque, int)
        texts = tuple(map(mod, self._forms, values))
        lengths = tuple(map(len, texts))
        size, shape = self._shapes.get(lengths) or self._shape(lengths)
        number = opaque.to_bytes(4, signed=True).decode("latin-1")
        frame = (shape % (number, *texts)).encode("latin-1")
        return (size + body).to_bytes(4) + frame

    def _shape(self, lengths: tuple[int, ...]) -> tuple[int, str]:
        """Return the shape for an opaque and values of these lengths."""
        response = msgspec.structs.replace(self._response, opaque=_OPAQUE)
        gaps = zip(self._gaps, lengths, strict=True)
        own = b"".join(binary_fields.pair(*field) for field in response.fields.items())
        starts = [binary_fields.pair_start(name, length) for name, length in gaps]
        size = len(own) + sum(map(len, starts)) + sum(lengths)
        remark = (response.remark or "").encode()
        header = binary_header.start_of(response, remark, size)
        size += len(header)
        kind = Serialization.ROCKETMQ << 24
        text = ((kind | size).to_bytes(4) + header + own).decode("latin-1").replace("%", "%%")
        text = text.replace(_OPAQUE.to_bytes(4).decode("latin-1"), "%s", 1)
        for start in starts:
            text += start.decode("latin-1").replace("%", "%%") + "%s"
        if len(self._shapes) >= _MAX_SHAPES:
            self._shapes.clear()
        self._shapes[lengths] = shape = size + 4, text
        return shape
