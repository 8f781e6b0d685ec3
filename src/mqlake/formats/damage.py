"""Name the damaged stretch of a file (docs/formats/record.md, "Damage")."""

from __future__ import annotations

import msgspec


class Damage(msgspec.Struct, frozen=True, rename={"length": "bytes"}):
    """A stretch of one file that does not follow its format.

    Attributes:
        file: path relative to the store directory, with forward slashes.
        offset: position in that file, in bytes.
        length: bytes; `"bytes"` in JSON.
        reason: one line for a person.
    """

    file: str
    offset: int
    length: int
    reason: str
