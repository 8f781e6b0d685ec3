"""The delivery progress of each delay level: `config/delayOffset.json`.

Upstream: `ScheduleMessageService` (`offsetTable`).
"""

from __future__ import annotations

from mqlake.formats.config import DataVersion, DelayOffsets
from mqlake.store.config.config_file import ConfigFile, ConfigWrite

CHANGES_A_VERSION = 200
"""The number of changes that count as one of the table (`delayOffsetUpdateVersionStep`)."""


class DelayOffsetTable:
    """Queue offsets by delay level, 1 is the first; `write` stores them."""

    def __init__(self, file: ConfigFile[DelayOffsets]) -> None:
        self._file = file
        self._offsets: dict[int, int] = self._file.known.offset_table
        self._changes = 0

    @property
    def version(self) -> DataVersion:
        """How often the table was changed, and when it was changed last."""
        return self._file.version

    def items(self) -> list[tuple[int, int]]:
        """Return the levels that have an offset, with the offset; ascending."""
        return sorted(self._offsets.items())

    def get(self, level: int) -> int | None:
        """Return the queue offset of the first undelivered message, None if none was delivered."""
        return self._offsets.get(level)

    def set(self, level: int, offset: int) -> None:
        """Set the queue offset of a level's first undelivered message."""
        if self._offsets.get(level) == offset:
            return
        self._offsets[level] = offset
        self._file.change()
        self._changes += 1
        if self._changes % CHANGES_A_VERSION == 0:
            self._file.next_version()

    def follow(self, offsets: dict[int, int], version: DataVersion) -> None:
        """Replace all offsets, and the version, by those of a master."""
        if offsets == self._offsets and version == self._file.version:
            return
        self._offsets = dict(offsets)
        self._file.follow_version(version)

    def write(self) -> ConfigWrite | None:
        """Return a job that writes the file, None if it is up to date."""
        if not self._file.changed:
            return None
        offsets = dict(self._offsets)
        return self._file.write(lambda: {"offsetTable": offsets})
