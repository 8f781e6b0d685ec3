"""Where users and ACLs are kept: `config/auth.json` of a store, readable by its owner only, or the
two RocksDB directories in which RocketMQ keeps them, if they exist.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import msgspec

from mqlake.auth.policies import Acl
from mqlake.auth.reading import (
    read_policies,
    read_user,
    username_of,
    write_acl,
    write_user,
)
from mqlake.auth.state import AuthState
from mqlake.auth.users import User
from mqlake.errors import FormatError, StoreError
from mqlake.protocol.bodies.auth import AclInfo, UserInfo
from mqlake.protocol.errors import RemotingError
from mqlake.storage.durable import make_directories, replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import OwnedDirectory
from mqlake.storage.read_file import read_file

DIRECTORY: Final = "config"
PATH: Final = f"{DIRECTORY}/auth.json"
_log: Final = logging.getLogger("mqlake.auth")
_MODE: Final = 0o600
_USERS: Final = f"{DIRECTORY}/users"
_ACLS: Final = f"{DIRECTORY}/acls"
_IMPORTED: Final = f"{PATH}.imported"
_VERSION: Final = 1


class _Content(msgspec.Struct):
    version: int
    users: list[UserInfo] = []
    acls: list[AclInfo] = []


class AccountFile:
    """The users and ACLs in a store's directory.

    RocketMQ's directories `config/users` and `config/acls` are used if one of them exists; they may
    be empty. Otherwise, `config/auth.json` is.

    Args:
        directory: of the store. On a local disk, only the owner can read the file.
    """

    def __init__(self, directory: OwnedDirectory) -> None:
        if isinstance(directory, LocalOwnedDirectory):
            directory = LocalOwnedDirectory(directory.describe(), file_mode=_MODE)
        self._directory = directory

    def read(self) -> AuthState | None:
        """Return what is kept, None if there is nothing.

        Raises:
            StoreError: it is damaged or cannot be read; or there are both kinds, or RocksDB is
                needed and not installed.
        """
        data = read_file(self._directory, PATH)
        if self._is_in_rocksdb:
            return self._in_rocksdb(data)
        return None if data is None else self._decoded(data)

    def write(self, state: AuthState) -> None:
        """Replace what is kept; return once it is durable.

        Raises:
            DiskError: the disk refused it. In RocksDB, a part may have been written.
        """
        if self._is_in_rocksdb:
            from mqlake.auth.rocksdb.directories import write_accounts

            write_accounts(*self._paths, state)
            return
        make_directories(self._directory, DIRECTORY)
        replace_file(self._directory, PATH, _encoded(state))

    @property
    def _is_in_rocksdb(self) -> bool:
        return any(self._directory.is_directory(path) for path in (_USERS, _ACLS))

    @property
    def _paths(self) -> tuple[Path, Path]:
        return Path(self._directory.describe(_USERS)), Path(self._directory.describe(_ACLS))

    def _in_rocksdb(self, data: bytes | None) -> AuthState:
        """Return what RocketMQ's directories contain; empty ones get the content of the file."""
        from mqlake.auth.rocksdb.directories import read_accounts

        if data is None:
            return read_accounts(*self._paths)
        where = self._directory.describe(PATH)
        state = self._decoded(data)
        found = read_accounts(*self._paths)
        # A part may have been written before the program was ended.
        is_part = (
            found.users.items() <= state.users.items() and found.acls.items() <= state.acls.items()
        )
        if not is_part:
            raise StoreError(
                f"{where}: there are users in RocketMQ's {DIRECTORY}/users, too: remove what is out"
                " of date, this file or the directories users and acls"
            )
        self.write(state)
        self._directory.replace(PATH, _IMPORTED)
        self._directory.sync_directory(DIRECTORY)
        _log.info("%s: its users and ACLs are in RocketMQ's directories now", where)
        return state

    def _decoded(self, data: bytes) -> AuthState:
        try:
            return _state(msgspec.json.decode(data, type=_Content))
        except (msgspec.MsgspecError, UnicodeDecodeError, RemotingError, FormatError) as error:
            where = self._directory.describe(PATH)
            raise StoreError(f"{where}: users and ACLs cannot be read: {error}") from None


def _encoded(state: AuthState) -> bytes:
    users = [write_user(user, with_password=True) for user in state.users.values()]
    acls = [write_acl(name, acl) for name, acl in state.acls.items()]
    return msgspec.json.format(msgspec.json.encode(_Content(_VERSION, users, acls)), indent=1)


def _state(content: _Content) -> AuthState:
    if content.version != _VERSION:
        raise FormatError(f"version {content.version} is not known")
    users: dict[str, User] = {}
    for info in content.users:
        user = read_user(info)
        users[user.username] = user
    acls: dict[str, Acl] = {}
    for info in content.acls:
        acl, name = Acl(), username_of(info.subject)
        for kind, entries in read_policies(info.policies):
            acl = acl.merged(kind, entries)
        acls[name] = acl
    return AuthState(users, acls)
