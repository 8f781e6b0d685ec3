"""Stretches of the log without a valid record."""

from __future__ import annotations

from typing import NamedTuple

from mqlake.formats.record import Fault


class Gap(NamedTuple):
    """A stretch without a valid record (bytes); `fault` says what is at its first position.

    With `Fault.CRC` the scan returned the record nevertheless: its structure is valid, and RocketMQ
    dispatches it unchecked.
    """

    physical_offset: int
    length: int
    fault: Fault
    all_zero: bool
    """Each byte is zero. Up to the segment's end this is unwritten space, not damage."""
    open: bool = False
    """The scan ended inside the gap: the gap may continue."""
