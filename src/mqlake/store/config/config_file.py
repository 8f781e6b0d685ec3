"""One file of a store's `config` directory, owned: loaded once, written when it has changed.

Members that this release does not know stay in the file. Upstream: `ConfigManager`, `DataVersion`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Protocol, Self, TypeVar, cast

import msgspec

from mqlake.errors import DiskError, FormatError, StoreError
from mqlake.formats import fastjson
from mqlake.formats.config import Config, DataVersion, convert
from mqlake.storage.clock import Clock
from mqlake.storage.durable import make_directories, replace_file
from mqlake.storage.protocol import Directory, OwnedDirectory
from mqlake.storage.read_file import read_file
from mqlake.store.config.config_files import DIRECTORY

BACKUP = ".bak"

Fields = dict[str, object]
"""A JSON object's members by name."""


class VersionedConfig(Config, Protocol):
    """A Struct for a configuration file that counts its changes."""

    @property
    def data_version(self) -> DataVersion:
        """How often the table was changed."""
        ...


C = TypeVar("C", bound=VersionedConfig)


class ConfigFile(Generic[C]):
    """A configuration file that only this process writes.

    Attributes:
        known: the content of the file when it was loaded; defaults if it did not exist, or after
            `hand_over`.
        fields: all members of its object when it was loaded, including those that `known` does not
            have, except those that `hand_over` names.
        version: counts the changes of the table.
        changes: how often it has changed since it was loaded.
        written: how many of the changes are durable.

    Args:
        found: what was loaded, and whether the file itself was valid; None if there is no file.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        kind: type[C],
        clock: Clock,
        found: tuple[C, Fields, bool] | None,
    ) -> None:
        self._directory, self._clock = directory, clock
        self._path = _path(kind)
        self._kind = kind
        self.known, self.fields, self._has_good_file = found or (convert({}, kind), {}, True)
        is_counted = self.known.data_version != DataVersion()
        now = clock.milliseconds()
        self.version = self.known.data_version if is_counted else DataVersion(timestamp=now)
        self.changes = self.written = 0
        self._writing, self._on_disk = Lock(), 0

    @classmethod
    def load(cls, directory: OwnedDirectory, kind: type[C], clock: Clock) -> Self:
        """Read the file of a kind of configuration.

        Raises:
            StoreError: the file and its backup are both damaged, or cannot be read.
        """
        return cls(directory, kind, clock, _load(directory, _path(kind), kind))

    def hand_over(self, *members: str) -> C:
        """Return `known`, and forget it and members of the file, which can be large.

        Args:
            members: names of those that the caller's tables replace in each write.
        """
        known, self.known = self.known, convert({}, self._kind)
        self.fields = {name: each for name, each in self.fields.items() if name not in members}
        return known

    @property
    def changed(self) -> bool:
        """Return whether the table has changes that the file lacks."""
        return self.changes != self.written

    def change(self) -> None:
        """Note a change that the file lacks."""
        self.changes += 1

    def next_version(self) -> None:
        """Count a change, and note that the file lacks it."""
        self.version = msgspec.structs.replace(
            self.version,
            counter=self.version.counter + 1,
            timestamp=self._clock.milliseconds(),
        )
        self.change()

    def begin_state(self, state_version: int) -> None:
        """Let the versions from now on be later than those of earlier masters."""
        self.version = msgspec.structs.replace(self.version, state_version=state_version)
        self.next_version()

    def follow_version(self, version: DataVersion) -> None:
        """Adopt another broker's version, and note that the file lacks it."""
        self.version = version
        self.change()

    def write(self, tables: Callable[[], Mapping[str, object]]) -> ConfigWrite:
        """Return a job that writes the file again; its old content becomes the backup.

        Args:
            tables: returns members that replace those of the file, under the file's names. It is
                called in the thread that writes, by one thread at a time: its input must no longer
                change.
        """
        changes = self.changes
        version = msgspec.to_builtins(self.version)
        # A file that could not be loaded must not replace the backup that could.
        backup = self._path + BACKUP if self._has_good_file else None

        def encode() -> bytes:
            fields = {**self.fields, **tables(), "dataVersion": version}
            return fastjson.dumps(dict(sorted(fields.items()))).encode("utf-8", "replace")

        def replace() -> None:
            with self._writing:
                if self._on_disk <= changes:  # Otherwise the file is newer by now.
                    self._replace(encode(), backup)
                    self._on_disk = changes

        def done(failure: DiskError | None) -> None:
            if failure is None and self.written <= changes:
                self._has_good_file, self.written = True, changes

        return ConfigWrite(replace, done)

    def _replace(self, content: bytes, backup: str | None) -> None:
        make_directories(self._directory, DIRECTORY)
        replace_file(self._directory, self._path, content, backup=backup)


@dataclass
class ConfigWrite:
    """The new content of a configuration file, which is being written.

    `replace` encodes and writes it; it is called by `run`, and may take long.

    It is created in the store's thread; `run` may be called in any thread; `done` is called in the
    store's thread again. `done` reports a disk that refuses the file: the table still counts as
    changed, and the next write tries again, with a new job.
    """

    replace: Callable[[], None]
    note: Callable[[DiskError | None], None]
    failure: DiskError | None = None

    def run(self) -> None:
        """Write it; return once it is durable, or was refused."""
        try:
            self.replace()
        except DiskError as error:
            self.failure = error

    def done(self) -> None:
        """Note whether it was written.

        Raises:
            DiskError: the system refused it; the old content is unchanged.
        """
        self.note(self.failure)
        if self.failure is not None:
            raise self.failure

    def complete(self) -> None:
        """Run all steps in this thread.

        Raises:
            DiskError: the system refused it; the old content is unchanged.
        """
        self.run()
        self.done()


class FileTable(Generic[C]):
    """A table in a configuration file."""

    _file: ConfigFile[C]

    @property
    def version(self) -> DataVersion:
        """How often the table was changed, and when it was changed last."""
        return self._file.version

    @property
    def changes(self) -> int:
        """Count the changes since the start."""
        return self._file.changes

    def is_kept(self, changes: int) -> bool:
        """Return whether the first changes, so many of them, are durable."""
        return self._file.written >= changes


def _path(kind: type[Config]) -> str:
    return f"{DIRECTORY}/{kind.file_name}"


def _load(directory: Directory, path: str, kind: type[C]) -> tuple[C, Fields, bool] | None:
    """Return what is known, all fields, and whether they come from the file itself, not from its
    backup.
    """
    damage: FormatError | None = None
    for name in (path, path + BACKUP):
        if content := read_file(directory, name):
            try:
                value = fastjson.loads(content)
                known = convert(value, kind)
                return known, cast("Fields", value), name == path
            except FormatError as error:
                damage = damage or error
    if damage is not None:
        where = directory.describe(path)
        raise StoreError(
            f"{where}: {damage}, and there is no valid backup; restore a copy of the file, or "
            "remove it"
        )
    return None
