"""The epochs of a log: which part of it was written under which master.

Upstream: `EpochFileCache`.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Sequence
from threading import Lock

from mqlake.errors import FormatError, StoreError
from mqlake.formats import epoch_file
from mqlake.formats.epoch_file import BACKUP, LARGEST, MOST_EPOCHS, NAME, Epoch
from mqlake.storage.durable import replace_file
from mqlake.storage.protocol import OwnedDirectory
from mqlake.storage.read_file import read_file

_log = logging.getLogger(__name__)


class Epochs:
    """The epochs of one store's log, ascending. Changes return once they are durable.

    Any thread may call it.

    Raises:
        StoreError: the file and its backup are both damaged.
    """

    def __init__(self, directory: OwnedDirectory) -> None:
        self._directory = directory
        self._changing = Lock()
        self._all: list[Epoch] = _load(directory)

    @property
    def all(self) -> tuple[Epoch, ...]:
        """The epochs, ascending."""
        return tuple(self._all)

    @property
    def last(self) -> Epoch | None:
        """The newest epoch; None without epochs."""
        return self._all[-1] if self._all else None

    @property
    def last_number(self) -> int:
        """The number of the newest epoch; -1 without epochs."""
        return self._all[-1].number if self._all else -1

    def at(self, physical_offset: int) -> Epoch | None:
        """Return the epoch in which the byte at a physical offset was written, or will be."""
        place = bisect_right(self._all, physical_offset, key=lambda each: each.start)
        return self._all[place - 1] if place else None

    def end_of(self, epoch: Epoch) -> int | None:
        """Return the physical offset at which an epoch ends; None for the last one."""
        return next((each.start for each in self._all if each.start > epoch.start), None)

    def begin(self, number: int, start: int, end: int) -> None:
        """Begin an epoch at the end of the log, as a master does.

        The first epoch begins at the start of the log, because the log was written without epochs.
        An epoch that has begun already continues: its master was only away.

        An epoch in which nothing was written is removed: its master may have written something that
        is missing here. The epochs of an empty log stay, and end where they begin. Otherwise a
        RocketMQ slave that knows one of them would never find a common epoch.

        Args:
            start, end: physical offsets of the log's first byte, and after its last.

        Raises:
            DiskError: the system refused it.
        """
        with self._changing:
            if number == self.last_number:
                return
            before = [each for each in self._all if each.number < number]
            kept = [each for each in before if each.start < end or each.start == start == end]
            self._keep([*kept, Epoch(number, end if self._all else start)])

    def append(self, epoch: Epoch) -> None:
        """Add an epoch whose bytes the master sends next.

        Raises:
            DiskError: the system refused it.
            StoreError: it cannot follow the existing epochs.
        """
        with self._changing:
            last = self.last
            if last is not None and (epoch.number <= last.number or epoch.start < last.start):
                raise StoreError(
                    f"the master sends epoch {epoch.number}, which begins at physical offset"
                    f" {epoch.start}, after epoch {last.number}, which begins at {last.start}"
                )
            first = self._all[0].start if self._all else epoch.start
            kept = [each for each in self._all if each.start < epoch.start or each.start == first]
            self._keep([*kept, epoch])

    def cut(self, end: int) -> None:
        """Remove the epochs that begin at or after a physical offset, where the log ends now.

        Raises:
            DiskError: the system refused it.
        """
        with self._changing:
            self._keep([each for each in self._all if each.start < end])

    def adopt(self, epochs: Sequence[Epoch], end: int) -> None:
        """Adopt a master's epochs up to the end of a log without epochs of its own.

        Raises:
            DiskError: the system refused it.
        """
        with self._changing:
            self._keep([each for each in epochs if each.start < end])

    def _keep(self, epochs: list[Epoch]) -> None:
        epochs = epochs[-MOST_EPOCHS:]  # A file with more epochs is not read.
        if epochs == self._all:
            return
        if epochs:
            for name in (NAME, BACKUP):
                replace_file(self._directory, name, epoch_file.encode(epochs))
        else:
            for name in (NAME, BACKUP):
                if self._directory.exists(name):
                    self._directory.remove(name)
            self._directory.sync_directory("")
        self._all = epochs


def common_end(
    own: Sequence[Epoch], own_end: int, other: Sequence[Epoch], other_end: int
) -> int | None:
    """Return the physical offset up to which two logs are equal; None if they never were.

    This is the end of the newest epoch that both have, in the log in which it ends first.

    Args:
        own_end, other_end: physical offsets at which the logs end.
    """
    ends = dict(zip(other, _ends(other, other_end), strict=True))
    pairs = list(zip(own, _ends(own, own_end), strict=True))
    for epoch, end in reversed(pairs):
        if epoch in ends:
            return min(end, ends[epoch])
    return None


def _ends(epochs: Sequence[Epoch], end: int) -> list[int]:
    return [*(each.start for each in epochs[1:]), end] if epochs else []


def _load(directory: OwnedDirectory) -> list[Epoch]:
    damage: FormatError | None = None
    for name in (NAME, BACKUP):
        data = read_file(directory, name, LARGEST)
        if not data:
            continue
        try:
            found = epoch_file.decode(data)
        except FormatError as error:
            damage = damage or error
            continue
        if damage is not None:
            _log.warning("%s: %s; using its backup", directory.describe(NAME), damage)
        return found
    if damage is not None:
        raise StoreError(
            f"{directory.describe(NAME)}: {damage}, and no valid backup exists; restore a copy, or"
            " start this broker with an empty store"
        )
    return []
