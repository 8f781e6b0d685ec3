"""The files of ACL 1.0: `conf/plain_acl.yml`, and all YAML files below `conf/acl`."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from mqlake.auth.plain.accounts import Account, account_of
from mqlake.auth.plain.addresses import Matches, addresses
from mqlake.errors import FormatError, StoreError
from mqlake.storage.local import LocalDirectory
from mqlake.storage.read_file import read_file

_log: Final = logging.getLogger(__name__)

_MAIN: Final = Path("conf") / "plain_acl.yml"
_FOLDER: Final = Path("conf") / "acl"
_TOOLS: Final = Path("conf") / "tools.yml"
_ENDINGS: Final = (".yml", ".yaml")
_LARGEST: Final = 4 << 20
"""Maximum bytes of one file."""

Signs = tuple[tuple[str, int, int, int], ...]
"""By what a change of the files is noticed: path, inode, size and time of each."""


class Rules(NamedTuple):
    """What the files say.

    Attributes:
        white_addresses: from where requests need neither a signature nor permissions.
        accounts: by access key.
    """

    white_addresses: tuple[Matches, ...] = ()
    accounts: Mapping[str, Account] = {}

    def is_white(self, address: str) -> bool:
        """Return whether everything from an address is allowed."""
        return any(matches(address) for matches in self.white_addresses)


class PlainFiles:
    """The files in one directory.

    Args:
        home: the directory that contains `conf`.
    """

    def __init__(self, home: Path) -> None:
        self._home = home

    def signs(self) -> Signs:
        """Return a value that changes if a file changes."""
        found: list[tuple[str, int, int, int]] = []
        for path in self.paths():
            try:
                status = path.stat()
            except OSError:
                continue
            found.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns))
        return tuple(found)

    def read(self) -> Rules:
        """Return what the files say.

        Raises:
            StoreError: a file cannot be read, or says something wrong. The message contains no key.
        """
        white: list[Matches] = []
        accounts: dict[str, Account] = {}
        for path in self.paths():
            try:
                _add(load(path), white, accounts, path)
            except FormatError as error:
                raise StoreError(f"{path}: {error}") from None
        if not accounts and not white:
            _log.warning("%s: there are no accounts, so every request is refused", self._home)
        return Rules(tuple(white), accounts)

    @property
    def main(self) -> Path:
        """Return the file to which accounts are added."""
        return self._home / _MAIN

    def paths(self) -> list[Path]:
        """Return the files that exist, in the order in which they count."""
        found: list[Path] = []
        for folder, folders, names in os.walk(self._home / _FOLDER):
            folders.sort()
            found += [Path(folder) / name for name in sorted(names) if name.endswith(_ENDINGS)]
        if self.main.exists() and self.main not in found:
            found.append(self.main)
        return [path for path in found if path != self._home / _TOOLS]


def _add(
    content: Mapping[str, Any], white: list[Matches], accounts: dict[str, Account], path: Path
) -> None:
    listed = _listed(content, "globalWhiteRemoteAddresses")
    white.extend(addresses(str(text)) for text in listed)
    for number, values in enumerate(_listed(content, "accounts"), 1):
        if not isinstance(values, dict):
            raise FormatError(f"account {number} is not a mapping")
        try:
            account = account_of(cast("dict[str, Any]", values))
        except FormatError as error:
            raise FormatError(f"account {number}: {error}") from None
        if account.access_key in accounts:
            _log.warning("%s: account %d exists already, and is ignored", path, number)
        else:
            accounts[account.access_key] = account


def check(content: Mapping[str, Any], path: Path) -> None:
    """Check what is to be written to a file.

    Raises:
        FormatError: it is wrong.
    """
    _add(content, [], {}, path)


def _listed(content: Mapping[str, Any], name: str) -> list[Any]:
    found = content.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise FormatError(f"{name} is not a list")
    return cast("list[Any]", found)


def load(path: Path) -> Mapping[str, Any]:
    """Return the mapping in a YAML file, empty without content.

    Raises:
        FormatError: it contains something else.
        StoreError: it cannot be read, or the package for YAML is missing.
    """
    try:
        import yaml
    except ImportError:
        raise StoreError("aclEnable needs PyYAML: pip install 'mqlake[acl]'") from None
    data = read_file(LocalDirectory(path.parent), path.name, _LARGEST + 1)
    if data is None:
        raise StoreError(f"{path}: {os.strerror(errno.ENOENT)}")
    if len(data) > _LARGEST:
        raise FormatError(f"it has more than {_LARGEST} bytes")
    try:
        found: object = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # The texts of these errors quote the file, and so may contain keys.
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise FormatError(f"it is not valid YAML{where}") from None
    if found is None:
        _log.warning("%s: there is nothing in it", path)
        return {}
    if not isinstance(found, dict):
        raise FormatError("it contains no mapping")
    return cast("dict[str, Any]", found)
