"""The checksum in the file of the table of incarnations: a changed digit would hide messages."""

from __future__ import annotations

import zlib
from typing import cast

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import config, fastjson
from mqlake.formats.incarnations import EndedIncarnations

_CHECKSUM = "crc32"
"""The file's member with the checksum; files of earlier releases lack it."""


def decode_checked(content: bytes) -> EndedIncarnations:
    """Return the table in a file's content.

    Raises:
        FormatError: it is not such a table, or not the one of which it has the checksum.
    """
    value = fastjson.loads(content)
    found = config.convert(value, EndedIncarnations)
    stored = cast("dict[str, object]", value).get(_CHECKSUM)
    if stored is not None and stored != (right := checksum(found)):
        raise FormatError(f"{_CHECKSUM} is {stored!r:.40}, but its content has {right}")
    return found


def with_checksum(table: EndedIncarnations) -> dict[str, object]:
    """Return the members of the file, by name."""
    return {**msgspec.to_builtins(table), _CHECKSUM: checksum(table)}


def checksum(table: EndedIncarnations) -> int:
    """Return the checksum of a table's content (docs/formats/incarnations.md).

    Neither the order of names nor blanks between them change it.
    """
    text = fastjson.dumps(_sorted(msgspec.to_builtins(table)), pretty=False)
    return zlib.crc32(text.encode("utf-8", "replace"))


def _sorted(value: object) -> object:
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, object]", value)
    return {name: _sorted(members[name]) for name in sorted(members)}
