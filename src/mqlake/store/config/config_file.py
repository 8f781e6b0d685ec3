"""One file of a store's `config` directory, owned: loaded once, written when it has changed.

What this release does not know stays in the file. RocketMQ: `ConfigManager`, `DataVersion`.
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
    """A configuration file that this process alone writes.

    Attributes:
        known: what the file held when it was loaded; defaults if it did not exist.
        fields: all members of its object, also those that `known` has no place for.
        version: counts the changes of the table.
        changes: how often it has changed since it was loaded.
        written: so many of the changes are on the disk.

    Args:
        found: what was loaded, and whether the file itself was good; None if there is no file.
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

    @property
    def changed(self) -> bool:
        """Whether the file lacks something."""
        return self.changes != self.written

    def change(self) -> None:
        """Note that the file lacks something."""
        self.changes += 1

    def next_version(self) -> None:
        """Count a change, and note that the file lacks it."""
        self.version = DataVersion(self.version.counter + 1, 0, self._clock.milliseconds())
        self.change()

    def follow_version(self, version: DataVersion) -> None:
        """Take over another broker's version, and note that the file lacks it."""
        self.version = version
        self.change()

    def write(self, tables: Callable[[], Mapping[str, object]]) -> ConfigWrite:
        """Return what writes the file anew, its old content becoming the backup.

        Args:
            tables: returns members that replace those of the file, under the file's names. It is
                called in the thread that writes, by one thread at a time: what it works on must not
                change any more.
        """
        changes = self.changes
        version = msgspec.to_builtins(self.version)
        # A file that could not be loaded must not take the place of the backup that could.
        backup = self._path + BACKUP if self._has_good_file else None
        fields = self.fields

        def encode() -> bytes:
            nonlocal fields
            fields = {**fields, **tables(), "dataVersion": version}
            return fastjson.dumps(dict(sorted(fields.items()))).encode("utf-8", "replace")

        def replace() -> None:
            with self._writing:
                if self._on_disk <= changes:  # else something newer is there by now
                    self._replace(encode(), backup)
                    self._on_disk = changes

        def done(failure: DiskError | None) -> None:
            if failure is None and self.written <= changes:
                self.fields = fields
                self._has_good_file, self.written = True, changes

        return ConfigWrite(replace, done)

    def _replace(self, content: bytes, backup: str | None) -> None:
        make_directories(self._directory, DIRECTORY)
        replace_file(self._directory, self._path, content, backup=backup)


@dataclass
class ConfigWrite:
    """The new content of a configuration file, on its way to the disk.

    `replace` encodes and writes it; it is called by `run`, and may take long.

    Made in the store's thread; `run` in any thread; `done` in the store's thread again. A disk that
    refuses the file is told by `done`: the table still counts as changed, and the next write tries
    again, on a file of its own.
    """

    replace: Callable[[], None]
    note: Callable[[DiskError | None], None]
    failure: DiskError | None = None

    def run(self) -> None:
        """Write it; return once it is on the disk, or was refused."""
        try:
            self.replace()
        except DiskError as error:
            self.failure = error

    def done(self) -> None:
        """Note whether it was written.

        Raises:
            DiskError: the system refused it; the old content is still there.
        """
        self.note(self.failure)
        if self.failure is not None:
            raise self.failure

    def complete(self) -> None:
        """Do all steps here.

        Raises:
            DiskError: the system refused it; the old content is still there.
        """
        self.run()
        self.done()


def _path(kind: type[Config]) -> str:
    return f"{DIRECTORY}/{kind.file_name}"


def _load(directory: Directory, path: str, kind: type[C]) -> tuple[C, Fields, bool] | None:
    """Return what is known, all fields, and whether they are the file's own, not its backup's."""
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
        raise StoreError(f"{where}: {damage}, and no good backup; put back a copy, or remove it")
    return None
