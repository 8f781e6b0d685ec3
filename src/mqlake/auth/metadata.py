"""The file with users and ACLs: `config/auth.json` of a store, readable by its owner only.

RocketMQ keeps them in two RocksDB directories, `config/users` and `config/acls`. mqlake does not
read them, and refuses to start if they exist: otherwise, users that an operator knows would be
missing, and permissions that were denied might be given.
"""

from __future__ import annotations

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
from mqlake.auth.state import State
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
_MODE: Final = 0o600
_OF_ROCKETMQ: Final = (f"{DIRECTORY}/users", f"{DIRECTORY}/acls")
_VERSION: Final = 1


class _Content(msgspec.Struct):
    version: int
    users: list[UserInfo] = []
    acls: list[AclInfo] = []


class AccountFile:
    """The file in a store's directory.

    Args:
        directory: of the store. On a local disk, only the owner can read the file.
    """

    def __init__(self, directory: OwnedDirectory) -> None:
        if isinstance(directory, LocalOwnedDirectory):
            directory = LocalOwnedDirectory(directory.describe(), file_mode=_MODE)
        self._directory = directory

    def read(self) -> State | None:
        """Return its content, None if it does not exist.

        Raises:
            StoreError: the file is damaged or cannot be read, or RocketMQ's files are there.
        """
        for path in _OF_ROCKETMQ:
            if self._directory.is_directory(path):
                where = self._directory.describe(path)
                raise StoreError(
                    f"{where}: RocketMQ keeps users and ACLs here, in RocksDB, which mqlake does"
                    " not read: remove the directory, and create the users again"
                )
        data = read_file(self._directory, PATH)
        if data is None:
            return None
        try:
            return _state(msgspec.json.decode(data, type=_Content))
        except (msgspec.MsgspecError, UnicodeDecodeError, RemotingError, FormatError) as error:
            where = self._directory.describe(PATH)
            raise StoreError(f"{where}: users and ACLs cannot be read: {error}") from None

    def write(self, state: State) -> None:
        """Replace its content; return once it is durable.

        Raises:
            DiskError: the disk refused it.
        """
        make_directories(self._directory, DIRECTORY)
        replace_file(self._directory, PATH, _encoded(state))


def _encoded(state: State) -> bytes:
    users = [write_user(user, with_password=True) for user in state.users.values()]
    acls = [write_acl(name, acl) for name, acl in state.acls.items()]
    return msgspec.json.format(msgspec.json.encode(_Content(_VERSION, users, acls)), indent=1)


def _state(content: _Content) -> State:
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
    return State(users, acls)
