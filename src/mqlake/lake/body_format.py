"""The format of message bodies whose fields are columns of a table (docs/typed-bodies.md)."""

from __future__ import annotations

from pathlib import Path

import msgspec

NEEDED = ("body", "properties", "sysFlag")
"""Columns of a message that are needed to decode its body."""


class BodyFormat(msgspec.Struct, frozen=True):
    """The format of bodies.

    Attributes:
        kind: the format's name in `decode`.
        schema: as for `decode`.
        arguments: its other arguments.
    """

    kind: str
    schema: str | Path | None = None
    arguments: dict[str, str] = {}
