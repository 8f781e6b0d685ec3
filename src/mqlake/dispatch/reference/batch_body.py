"""Lay the messages of a batch out as drafts of records (twin of `compiled.encode.draft_batch`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.errors import FormatError
from mqlake.formats.message_batch import decode_batch

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes
    from mqlake.dispatch.drafts import Rows


def draft_batch(source: Bytes, lead: int, rows: Rows) -> int:
    try:
        parts = list(decode_batch(source.tobytes()[lead:]))
    except FormatError:
        return -1
    for row, part in zip(rows, parts, strict=False):
        for name, value in part._asdict().items():
            row[name] = value + lead if name.endswith("_at") else value
    return len(parts)
