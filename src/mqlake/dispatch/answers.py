"""What kernels answer: plain numbers, compiled or not."""

from __future__ import annotations

from typing import NamedTuple

SEARCH_ALLOWANCE = 64 << 20
SEARCH_ALLOWANCE_RATE = 4
"""The searches of a scan read SEARCH_ALLOWANCE bytes of bodies in vain at most, plus so many for
each byte they advance. Hostile bytes could otherwise make each position a candidate with a body of
its own, and a scan quadratic."""


class Walk(NamedTuple):
    """How far a walk over records came."""

    at: int
    """Position behind the last record."""
    rows: int
    """How many rows were filled."""
    damaged: int
    """How many of them have a CRC fault."""
    verdict: int
    """What is at the position: GOOD if it is `stop` or the rows ran out, else a Fault or MORE."""


class Found(NamedTuple):
    """Where a search for a record ended."""

    at: int
    verdict: int
    """GOOD, BLANK (up to the segment's end), MORE (judge it with more bytes), or NOTHING."""
    spent: int
    """Bytes of bodies that were read in vain."""
