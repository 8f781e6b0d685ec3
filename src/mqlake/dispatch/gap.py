"""Stretches of the log without a good record."""

from __future__ import annotations

from typing import NamedTuple

from mqlake.formats.record import Fault


class Gap(NamedTuple):
    """A stretch without a good record (bytes); `fault` is what its first position is.

    With `Fault.CRC` the record was handed out all the same: its structure is good, and RocketMQ
    dispatches it unchecked.
    """

    physical_offset: int
    length: int
    fault: Fault
    all_zero: bool
    """Each byte is zero. Up to the segment's end that is space not yet written, not damage."""
    open: bool = False
    """The scan's end came before the gap's: it may go on."""
