"""The results of kernels: plain numbers, whether the kernel is compiled or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes

SEARCH_ALLOWANCE = 64 << 20
SEARCH_ALLOWANCE_RATE = 4
"""The searches of a scan read SEARCH_ALLOWANCE bytes of bodies in vain at most, plus so many for
each byte they advance. Hostile bytes could otherwise make each position a candidate with a body of
its own, and a scan quadratic."""


class Walk(NamedTuple):
    """How far a walk over records came."""

    at: int
    """Position after the last record."""
    rows: int
    """How many rows were filled."""
    damaged: int
    """How many of them have a CRC fault."""
    verdict: int
    """What is at the position: GOOD if it is `stop` or the rows ran out, else a Fault or MORE."""


class SearchEnd(NamedTuple):
    """Where a search for a record ended."""

    at: int
    verdict: int
    """GOOD, BLANK (up to the segment's end), MORE (judge it with more bytes), or NOTHING."""
    spent: int
    """Bytes of bodies that were read in vain."""


class Followed(NamedTuple):
    """How far following the entries of a queue came."""

    entries: int
    """How many were gone through."""
    rows: int
    """How many rows were filled: one for each record, and for each entry without its record."""
    messages: int
    bytes: int
    """Of the records, together with what the limits had before."""
    verdict: int
    """GOOD: no entries are left, or a limit is reached; MORE: the next one's record is in another
    segment."""


class MessageColumns(NamedTuple):
    """The columns of `mqlake.dispatch.arrow`, one buffer after the other, each aligned."""

    data: Bytes
    """The head, then the buffers; nothing if some text is not UTF-8."""
    rows: int
    untagged: int
    pairs: int
    """Of names and values, in the properties of all rows."""
    keys: int
    """Of all rows."""
