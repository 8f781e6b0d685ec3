"""The file for settings that were changed while a broker ran.

It is the `broker.conf` with which the broker was started, or `config/broker.properties` of its
store. Only the lines of changed settings are replaced; comments, other settings and the order of
the lines stay as they are. Upstream: `Configuration.persist`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from mqlake.errors import DiskError, StoreError
from mqlake.storage.durable import TEMPORARY, make_directories, parent, replace_file
from mqlake.storage.file_lock import locked
from mqlake.storage.local_owned import LocalOwnedDirectory, LocalOwnedFile, disk_errors
from mqlake.storage.protocol import Directory, OwnedDirectory
from mqlake.storage.read_file import read_file
from mqlake.store.bounds import Effect, effects, encoded_name
from mqlake.store.config.config_files import DIRECTORY
from mqlake.store.java_properties import lines, written
from mqlake.store.live_settings import ROLE
from mqlake.store.settings import attribute_of

PATH = f"{DIRECTORY}/broker.properties"
"""The file in a store."""

PATIENCE = 3.0
"""Seconds to wait for another broker that changes the same file."""

_HEAD = """\
# Settings that were changed while the broker ran. It reads them when it starts; its command line
# and the file of its option -c come first.
"""


class PropertiesFile:
    """A file of Java's `Properties` that is edited.

    Args:
        may_be_new: whether the file is created if it does not exist.
    """

    def __init__(self, directory: OwnedDirectory, path: str, *, may_be_new: bool) -> None:
        self._directory, self._path, self._may_be_new = directory, path, may_be_new
        self._shared: Path | None = None

    @classmethod
    def of_store(cls, directory: OwnedDirectory) -> Self:
        """Return the file in a store's `config/`."""
        return cls(directory, PATH, may_be_new=True)

    @classmethod
    def given(cls, path: Path) -> Self:
        """Return a file that a user created, and that keeps its permissions.

        If the path is a symbolic link, its target is edited.
        """
        found = path.resolve()
        file = cls(_DirectoryOfOthers(found.parent), found.name, may_be_new=False)
        # Several brokers may have been started with it.
        file._shared = found
        return file

    def change(self, kind: type[msgspec.Struct], values: Mapping[str, str]) -> None:
        """Write new values of settings; return once they are durable. May run in any thread.

        After a crash the file has either its old content or the new.

        Args:
            kind: the class of the settings: their lines may have the name of `broker.conf`, or the
                attribute's.
            values: by the names of `broker.conf`.

        Raises:
            StoreError: the disk refused it, the file no longer exists, or another broker has been
                changing it for some seconds. The file keeps its old content.
        """
        # Without the file there is nothing to lock, and the change is refused.
        shared = self._shared if self._directory.exists(self._path) else None
        with locked(shared, PATIENCE) if shared else nullcontext():
            self._change(kind, values)

    def _change(self, kind: type[msgspec.Struct], values: Mapping[str, str]) -> None:
        directory, path = self._directory, self._path
        old = read_file(directory, path)
        if old is None and not self._may_be_new:
            raise StoreError(f"{directory.describe(path)}: the file no longer exists; restore it")
        # Only comments should contain bytes that are not UTF-8; they are kept unchanged.
        text = _HEAD if old is None else old.decode("utf-8", "surrogateescape")
        new = edited(text, kind, values).encode("utf-8", "surrogateescape")
        if new == old:
            return
        if parent(path):
            make_directories(directory, parent(path))
        try:
            replace_file(directory, path, new)
        except DiskError:
            self._put_back(old)
            raise

    def _put_back(self, old: bytes | None) -> None:
        """Undo a change that was made but may not survive a power loss: the change is refused."""
        with suppress(StoreError):
            if read_file(self._directory, self._path) == old:
                return
            if old is None:
                self._directory.remove(self._path)
            else:
                replace_file(self._directory, self._path, old)


class _DirectoryOfOthers(LocalOwnedDirectory):
    """A directory whose files keep their permissions when they are replaced."""

    def create(self, path: str, size: int) -> LocalOwnedFile:
        file = super().create(path, size)
        # This happens while the file is empty: a private file is never readable to others, even
        # after a kill.
        replaced = self.describe(path.removesuffix(TEMPORARY))
        try:
            with disk_errors(replaced), suppress(FileNotFoundError):
                shutil.copymode(replaced, self.describe(path))
        except BaseException:
            file.close()
            with suppress(StoreError):
                self.remove(path)
            raise
        return file


class ChangedSettings(NamedTuple):
    """The content of the file in a store."""

    values: dict[str, str]
    """Values by the names of `broker.conf`; of settings that change while a broker runs."""
    ignored: list[str]
    """All other names in the file, sorted."""

    def besides(self, kind: type[msgspec.Struct], given: Iterable[str]) -> dict[str, str]:
        """Return the values of settings that have neither of their names among those given."""
        known = {attribute_of(kind, name) for name in given}
        return {
            name: value
            for name, value in self.values.items()
            if attribute_of(kind, name) not in known
        }


def read_changed(directory: Directory, kind: type[msgspec.Struct]) -> ChangedSettings:
    """Return the settings that were changed while a broker ran on a store.

    A line may have the name of `broker.conf` or the attribute's; the last line of a setting counts.

    Args:
        kind: the class of the settings.

    Raises:
        StoreError: the file cannot be read.
    """
    text = (read_file(directory, PATH) or b"").decode("utf-8", "replace")
    found, ignored = ChangedSettings({}, []), set[str]()
    for line in lines(text, is_strict=False):
        if line.name is None:
            continue
        attribute = attribute_of(kind, line.name)
        is_kept = attribute in ROLE or effects(kind).get(attribute or "") is Effect.NOW
        if attribute is None or not is_kept:
            ignored.add(line.name)
        else:
            found.values[encoded_name(kind, attribute)] = line.value or ""
    return found._replace(ignored=sorted(ignored))


def edited(text: str, kind: type[msgspec.Struct], values: Mapping[str, str]) -> str:
    """Return the text of a file of Java's `Properties` with other values for some settings.

    A setting that has lines gets its value in each of them, as the last one counts. A setting
    without a line is appended. All other lines stay as they are.
    """
    missing = {attribute_of(kind, name): name for name in values}
    names = dict(missing)
    kept: list[str] = []
    for line in lines(text, is_strict=False):
        attribute = attribute_of(kind, line.name) if line.name is not None else None
        if line.name is None or attribute is None or attribute not in names:
            kept.append(line.raw)
            continue
        missing.pop(attribute, None)
        bare = line.raw.rstrip("\r\n")
        kept.append(written(line.name, values[names[attribute]]) + line.raw[len(bare) :])
    if missing and kept:
        kept.append(_end(kept[-1]))
    kept += [f"{written(name, values[name])}\n" for name in missing.values()]
    return "".join(kept)


def _end(last: str) -> str:
    """Return what ends the last line of a text, so that others can follow."""
    bare = last.rstrip("\r\n")
    is_comment = last.lstrip(" \t\f").startswith(("#", "!"))
    if not is_comment and (len(bare) - len(bare.rstrip("\\"))) % 2 == 1:
        return "\n\n"  # The first may belong to a carriage return.
    return "\n" if bare == last else ""
