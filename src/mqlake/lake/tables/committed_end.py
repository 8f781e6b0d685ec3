"""Where the part of the log ends that is in a table."""

from __future__ import annotations

import msgspec


class CommittedEnd(msgspec.Struct, frozen=True):
    """Where the newest batch of a table ends in the log: everything before is in the table.

    Attributes:
        physical_offset: where a record starts, or the log ended.
        fingerprint: of the log before that; None if it is not known.
        batch: its number; None in tables that earlier versions wrote.
    """

    physical_offset: int
    fingerprint: int | None = None
    batch: int | None = None
