"""Bytes to values and back, one module a format, without a disk, a clock or a log.

Each module has functions such as `decode` and `encode`, so it is imported whole:
`from mqlake.formats import record`. Their pages are in docs/formats. The values are found here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.formats.checkpoint import Checkpoint as Checkpoint
    from mqlake.formats.consume_queue import QueueEntry as QueueEntry
    from mqlake.formats.damage import Damage as Damage
    from mqlake.formats.dialect import Dialect as Dialect
    from mqlake.formats.index_file import IndexEntry as IndexEntry
    from mqlake.formats.index_file import IndexHeader as IndexHeader
    from mqlake.formats.record import Fault as Fault
    from mqlake.formats.record import Record as Record
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Checkpoint": "checkpoint",
            "QueueEntry": "consume_queue",
            "Damage": "damage",
            "Dialect": "dialect",
            "IndexEntry": "index_file",
            "IndexHeader": "index_file",
            "Fault": "record",
            "Record": "record",
        },
    )
