"""The files that record which timer messages were delivered (docs/formats/timer_checkpoint.md).

`config/timercheck` is used while the store is open. A clean stop also leaves RocketMQ's timer log,
so that RocketMQ continues without delivering anything twice; it builds its wheel from that.
Upstream: `TimerCheckpoint`, `TimerLog`, `TimerWheel`.
"""

from __future__ import annotations

from typing import Self

from mqlake.errors import DiskError, FormatError
from mqlake.formats import timer_checkpoint, timer_log
from mqlake.formats.file_name import segment_name
from mqlake.formats.timer_checkpoint import TimerCheckpoint, TimerPosition
from mqlake.formats.timer_log import TimerUnit
from mqlake.storage.durable import create_file, make_directories, replace_file
from mqlake.storage.protocol import OwnedDirectory
from mqlake.storage.read_file import read_file
from mqlake.store.config.config_file import ConfigWrite
from mqlake.store.config.config_files import DIRECTORY
from mqlake.store.settings import StoreSettings

_CHECKPOINT = f"{DIRECTORY}/timercheck"
_LOG = "timerlog"
_WHEEL = "timerwheel"


class TimerFiles:
    """The timer checkpoint, and the timer log of a clean stop.

    Attributes:
        found: the position when it was opened.
        wanted: the position to write next.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        settings: StoreSettings,
        fields: TimerCheckpoint,
        found: TimerPosition,
    ) -> None:
        self._directory = directory
        self._log_size = settings.mapped_file_size_timer_log
        self._fields = fields
        self.found = self._written = self.wanted = found

    @classmethod
    def open(cls, directory: OwnedDirectory, settings: StoreSettings) -> Self:
        """Read the timer checkpoint, and adopt the files of a clean stop.

        Raises:
            DiskError: the disk failed.
        """
        files = cls(directory, settings, *_load(directory))
        if any(name == _LOG or name.startswith(_WHEEL) for name in directory.names("")):
            files._take_over()
        return files

    def pending(self) -> ConfigWrite | None:
        """Return a job that writes the position, None if the file has it already."""
        if self.wanted == self._written:
            return None
        return self._write(self.wanted, 0, self.wanted.first_waiting)

    def write_next(self, position: TimerPosition) -> None:
        """Let the next write note a position."""
        self.wanted = position

    def encoded(self) -> bytes:
        """Return RocketMQ's fields and the position, as `timer_checkpoint.decode` reads them."""
        return timer_checkpoint.encode(*self._content(self.wanted, 0, self.wanted.first_waiting))[
            : timer_checkpoint.USED
        ]

    def follow(self, data: bytes) -> None:
        """Write the checkpoint of another store next.

        Raises:
            FormatError: the bytes are not a checkpoint.
        """
        fields, position = timer_checkpoint.decode(data)
        self.wanted = _position_of(fields) if position is None else position
        self._fields = fields

    def close(self, units: list[TimerUnit] | None, now: int) -> None:
        """Write the position, and the timer log.

        Args:
            units: the waiting messages; None if they are not all known.
            now: the current slot, milliseconds.

        Raises:
            DiskError: the disk refused a file.
        """
        units, position, has_log = units or [], self.wanted, False
        try:
            has_log = bool(units) and self._write_log(units, now)
        finally:
            # Also if the disk refuses the timer log: without the position, the next start would
            # deliver messages a second time.
            if not has_log and (pending := self.pending()) is not None:
                pending.complete()
        if has_log:
            size = len(units) * timer_log.UNIT_SIZE
            self._write(position, size, position.taken_in).complete()

    def _write(self, position: TimerPosition, log_size: int, queue_offset: int) -> ConfigWrite:
        fields, _ = content = self._content(position, log_size, queue_offset)
        data = timer_checkpoint.encode(*content)

        def replace() -> None:
            make_directories(self._directory, DIRECTORY)
            replace_file(self._directory, _CHECKPOINT, data)

        def note(failure: DiskError | None) -> None:
            # A refused write costs no message: the next interval tries again.
            if failure is None:
                self._written, self._fields = position, fields

        return ConfigWrite(replace, note)

    def _content(
        self, position: TimerPosition, log_size: int, queue_offset: int
    ) -> tuple[TimerCheckpoint, TimerPosition]:
        fields = self._fields._replace(
            last_read_time=position.done_before,
            last_log_position=log_size,
            last_queue_offset=queue_offset,
            master_queue_offset=queue_offset,
        )
        return fields, position

    def _take_over(self) -> None:
        """Remove the timer log, which is wrong from now on. RocketMQ then works without it."""
        self._write(self.found, 0, self.found.first_waiting).complete()
        directory = self._directory
        if directory.is_directory(_LOG):
            for name in directory.names(_LOG):
                directory.remove(f"{_LOG}/{name}")
            directory.sync_directory(_LOG)
            directory.remove_directory(_LOG)
        for name in directory.names(""):
            if name.startswith(_WHEEL):
                directory.remove(name)
        directory.sync_directory("")

    def _write_log(self, units: list[TimerUnit], now: int) -> bool:
        """Write the timer log; return whether it fits into one file."""
        data = timer_log.encode(units, now)
        if len(data) + timer_log.UNIT_SIZE > self._log_size:
            return False
        make_directories(self._directory, _LOG)
        file = create_file(self._directory, f"{_LOG}/{segment_name(0)}", self._log_size)
        try:
            file.write(0, data)
            file.sync()
        finally:
            file.close()
        return True


def _load(directory: OwnedDirectory) -> tuple[TimerCheckpoint, TimerPosition]:
    data = read_file(directory, _CHECKPOINT, timer_checkpoint.SIZE)
    if data is None:
        return TimerCheckpoint(), TimerPosition()
    try:
        fields, position = timer_checkpoint.decode(data)
    except FormatError:
        return TimerCheckpoint(), TimerPosition()
    return fields, _position_of(fields) if position is None else position


def _position_of(fields: TimerCheckpoint) -> TimerPosition:
    """Return the messages that were delivered according to RocketMQ's fields."""
    taken_in = min(fields.last_queue_offset, fields.master_queue_offset)
    return TimerPosition(done_before=fields.last_read_time, taken_in=taken_in)
