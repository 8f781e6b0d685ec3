"""Frames that differ in few places only: made once, filled in many times."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

import msgspec

from mqlake.remoting.command import Command
from mqlake.remoting.json_header import encode

_LENGTHS: Final = struct.Struct(">II")
_OPAQUE: Final = 1_234_567_890
_GAP: Final = "\x00gap"


class FrameTemplate:
    """The frame of a response without a body, but for its opaque and some of its fields.

    For JSON headers only: what is filled in is not escaped.
    """

    def __init__(self, response: Command, gaps: Mapping[str, str]) -> None:
        """Make the frame of `response`, with gaps in it.

        Args:
            gaps: further fields: their names, and what their values are made by ("%d", "%s" …).
        """
        fields = {**response.fields, **{name: f"{_GAP}{name}" for name in gaps}}
        sample = msgspec.structs.replace(response, known_fields=fields, opaque=_OPAQUE)
        text = encode(sample).decode().replace("%", "%%").replace(str(_OPAQUE), "%d")
        for name, form in gaps.items():
            text = text.replace(msgspec.json.encode(_GAP + name).decode(), f'"{form}"')
        self._text = text

    def fill(self, *values: object) -> bytes:
        """Return a frame.

        Args:
            values: those of the gaps, in their order, then the opaque. Texts are without quotes,
                backslashes and control characters.
        """
        header = (self._text % values).encode()
        size = len(header)
        return _LENGTHS.pack(size + 4, size) + header
