"""What a broker found and repaired when it last opened its store: a file for those who ask."""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from mqlake.errors import MqlakeError
from mqlake.formats.record import Fault
from mqlake.storage.durable import make_directories, parent, replace_file
from mqlake.storage.protocol import Directory, OwnedDirectory
from mqlake.storage.read_file import read_file
from mqlake.store.recovery.recovery import RecoveryReport

PATH: Final = "config/lastRecovery.json"
_MOST: Final = 64 << 10
_MOST_PARTS: Final = 100

_log: Final = logging.getLogger(__name__)


class CutOffNote(msgspec.Struct, frozen=True, rename="camel"):
    """A part of the log that was cut off although it has good records: see `CutOffReport`."""

    path: str
    length: int = msgspec.field(name="bytes")
    records: int


class RecoveryNote(msgspec.Struct, frozen=True, rename="camel"):
    """What the last start of a broker found and repaired: see `RecoveryReport`.

    Attributes:
        time: when the store was open (ms).
        end: what is at the log's end, such as "unwritten".
    """

    time: int
    is_clean: bool
    start: int
    log_end: int
    end: str
    records: int
    queues: int
    queue_entries: int
    refused: int
    is_rebuilt: bool
    cut_off: list[CutOffNote] = []


def note_recovery(directory: OwnedDirectory, report: RecoveryReport, now: int) -> None:
    """Write the note of a start. A failure is logged: the broker serves without it.

    Args:
        now: milliseconds.
    """
    note = RecoveryNote(
        time=now,
        is_clean=report.is_clean,
        start=report.start,
        log_end=report.log_end,
        end=report.fault.name.lower(),
        records=report.records,
        queues=report.queues,
        queue_entries=report.queue_entries,
        refused=report.refused,
        is_rebuilt=report.is_rebuilt,
        cut_off=[
            CutOffNote(each.path, each.length, each.records)
            for each in report.cut_off[-_MOST_PARTS:]
        ],
    )
    try:
        make_directories(directory, parent(PATH))
        replace_file(directory, PATH, msgspec.json.encode(note))
    except MqlakeError as error:
        _log.warning("%s: not written: %s", directory.describe(PATH), error)


def last_recovery(directory: Directory) -> RecoveryNote | None:
    """Return the note of the last start.

    None if it does not exist, as after a start by RocketMQ, or if it cannot be read.
    """
    try:
        data = read_file(directory, PATH, _MOST)
        return None if data is None else msgspec.json.decode(data, type=RecoveryNote)
    except (MqlakeError, msgspec.DecodeError):
        return None


ENDS: Final = {
    Fault.GOOD.name.lower(): "the last record",
    Fault.UNWRITTEN.name.lower(): "nothing was written after the last record",
    Fault.BLANK.name.lower(): "the end of a segment",
    Fault.SHORT.name.lower(): "the end of the last file",
}
"""Ends of a log that a clean stop leaves; any other is a damaged or torn record."""
