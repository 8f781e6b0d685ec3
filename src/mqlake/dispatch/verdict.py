"""The verdicts of kernels on a position, in addition to `mqlake.formats.record.Fault`."""

from __future__ import annotations

MORE = -1
"""The window ends before the record does: read on."""

NOTHING = -2
"""A search found no record."""

OTHER = -3
"""The record is good, but not the one of this queue entry: another topic, queue or queue offset."""
