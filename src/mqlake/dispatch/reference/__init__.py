"""The kernels in plain Python, for reading, for checking the compiled ones, and for small scans.

Slow, and built on `mqlake.formats` alone: NumPy is not imported here, its arrays are only indexed.
"""

from __future__ import annotations

from mqlake.dispatch.reference.describe import describe
from mqlake.dispatch.reference.index_entries import insert_entries, lookup_entries, relink
from mqlake.dispatch.reference.queue_entries import group
from mqlake.dispatch.reference.records import search, walk
from mqlake.dispatch.reference.scan import scan_records

__all__ = [
    "describe",
    "group",
    "insert_entries",
    "lookup_entries",
    "relink",
    "scan_records",
    "search",
    "walk",
]
