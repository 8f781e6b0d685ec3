"""The kernels in plain Python, for reading, for checking the compiled ones, and for small scans.

Slow, and built on `mqlake.formats` alone: NumPy is not imported here, its arrays are only indexed.
"""

from __future__ import annotations

from mqlake.dispatch.reference.adjacent import adjacent, locate
from mqlake.dispatch.reference.batch_body import draft_batch
from mqlake.dispatch.reference.describe import describe
from mqlake.dispatch.reference.encode import properties_with_crc, state_crcs, write_records
from mqlake.dispatch.reference.index_entries import insert_entries, lookup_entries, relink
from mqlake.dispatch.reference.messages import message_columns
from mqlake.dispatch.reference.packed import packed
from mqlake.dispatch.reference.queue_entries import group
from mqlake.dispatch.reference.queue_read import copy_records, follow
from mqlake.dispatch.reference.records import first_torn, search, walk
from mqlake.dispatch.reference.scan import scan_records
from mqlake.dispatch.reference.values import values

__all__ = [
    "adjacent",
    "copy_records",
    "describe",
    "draft_batch",
    "first_torn",
    "follow",
    "group",
    "insert_entries",
    "locate",
    "lookup_entries",
    "message_columns",
    "packed",
    "properties_with_crc",
    "relink",
    "scan_records",
    "search",
    "state_crcs",
    "values",
    "walk",
    "write_records",
]
