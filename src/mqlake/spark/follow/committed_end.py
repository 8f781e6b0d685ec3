"""Where the part of the log ends that a table has."""

from __future__ import annotations

import msgspec


class CommittedEnd(msgspec.Struct, frozen=True):
    """Where the newest batch of a table ends in the log: what comes before is in the table.

    Attributes:
        physical_offset: where a record starts, or the log ended.
        fingerprint: of the log before that; None if it is not known.
    """

    physical_offset: int
    fingerprint: int | None = None
