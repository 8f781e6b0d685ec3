"""RocketMQ's two RocksDB directories with users and ACLs: read whole, and changed.

Upstream: `LocalAuthenticationMetadataProvider`, `LocalAuthorizationMetadataProvider`,
`ConfigRocksDBStorage`.

They are opened for each reading and each change, which are rare, and closed afterwards: a directory
that is not open can be copied, and is never in the way of another process.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mqlake.auth.policies import Acl
from mqlake.auth.rocksdb.values import (
    read_stored_acl,
    read_stored_user,
    stored_acl,
    stored_user,
)
from mqlake.auth.state import AuthState
from mqlake.auth.users import User
from mqlake.errors import DiskError, FormatError, StoreError
from mqlake.storage.durable import make_directories
from mqlake.storage.local_owned import LocalOwnedDirectory

try:
    from rocksdict import (
        AccessType,
        BlockBasedOptions,
        DBCompressionType,
        Options,
        Rdict,
        WriteOptions,
    )
except ModuleNotFoundError:
    raise StoreError("rocksdict is not installed: pip install 'mqlake[rocksdb]'") from None

_FORMAT: Final = 5
"""The newest format of tables that RocketMQ's RocksDB opens."""
_CURRENT: Final = "CURRENT"
"""A file that every database has."""
_MODE: Final = 0o700
"""Only the owner may enter: passwords are readable, and RocksDB's files are open to everyone."""


def is_database(path: Path) -> bool:
    """Return whether a directory contains a database; an empty one is to become one."""
    return (path / _CURRENT).exists()


def _check_whole(path: Path) -> None:
    """Check that a directory without a database has no data: RocksDB would remove it."""
    if is_database(path) or not path.is_dir():
        return
    for file in path.iterdir():
        if file.suffix == ".sst" or (file.suffix == ".log" and file.stat().st_size):
            raise StoreError(
                f"{path}: there is {file.name}, but no file {_CURRENT}: it is an incomplete copy of"
                " a database; copy the whole directory again"
            )


def read_accounts(users: Path, acls: Path) -> AuthState:
    """Return the users and ACLs of two directories, of which each may be missing or empty.

    Raises:
        StoreError: a directory cannot be read, or a record is damaged.
    """
    found_users: dict[str, User] = {}
    for key, value in _records(users):
        with _described(users):
            user = read_stored_user(key, value)
        found_users[user.username] = user
    found_acls: dict[str, Acl] = {}
    for key, value in _records(acls):
        with _described(acls):
            name, acl = read_stored_acl(key, value)
        if acl.entries:
            found_acls[name] = acl
    return AuthState(found_users, found_acls)


def write_accounts(users: Path, acls: Path, state: AuthState) -> None:
    """Write the users and ACLs of a state to two directories; return once that is durable.

    A user that is removed first loses its ACL, and a new one gets it last: whenever this is
    interrupted, nobody has permissions that neither the old nor the new state gives.

    Raises:
        DiskError: a directory cannot be written. A part of the change may have been made; the next
            call makes the rest.
        StoreError: a directory is an incomplete copy.
    """
    new_users = dict(stored_user(user) for user in state.users.values())
    new_acls = dict(stored_acl(name, acl) for name, acl in state.acls.items())
    with _opened(acls) as of_acls, _opened(users) as of_users:
        old_acls, old_users = dict(_items(of_acls)), dict(_items(of_users))
        for key in old_acls.keys() - new_acls.keys():
            del of_acls[key]
        for key in old_users.keys() - new_users.keys():
            del of_users[key]
        _put(of_users, old_users, new_users)
        _put(of_acls, old_acls, new_acls)


def _put(database: Rdict, old: Mapping[bytes, bytes], new: Mapping[bytes, bytes]) -> None:
    for key, value in new.items():
        if old.get(key) != value:
            database[key] = value


def _records(path: Path) -> list[tuple[bytes, bytes]]:
    """Return all records of a directory, without changing it."""
    try:
        _check_whole(path)
        if not is_database(path):
            return []
        database = Rdict(str(path), _options(), access_type=AccessType.read_only())
        try:
            return list(_items(database))
        finally:
            database.close()
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 (the library raises this class only)
        raise StoreError(f"{path}: RocksDB cannot read it: {error}") from None


def _items(database: Rdict) -> Iterator[tuple[bytes, bytes]]:
    for key, value in database.items():
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        yield key, value


@contextmanager
def _opened(path: Path) -> Generator[Rdict]:
    """Open a directory for changes, each of which is durable when its call returns."""
    try:
        _check_whole(path)
        above = path.parent
        make_directories(LocalOwnedDirectory(above.parent), f"{above.name}/{path.name}")
        path.chmod(_MODE)
        database = Rdict(str(path), _options())
        try:
            durable = WriteOptions()
            durable.sync = True
            database.set_write_options(durable)
            yield database
        finally:
            database.close()
    except (DiskError, StoreError):
        raise
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror}", error.errno or 0) from None
    except Exception as error:  # noqa: BLE001 (the library raises this class only)
        raise DiskError(f"{path}: RocksDB cannot write it: {error}") from None


def _options() -> Options:
    """Return options with which RocketMQ opens what is written."""
    options, tables = Options(raw_mode=True), BlockBasedOptions()
    tables.set_format_version(_FORMAT)
    options.create_if_missing(True)
    options.set_allow_concurrent_memtable_write(False)  # RocketMQ's files ask for that.
    options.set_block_based_table_factory(tables)
    options.set_compression_type(DBCompressionType.none())
    options.set_keep_log_file_num(1)
    return options


@contextmanager
def _described(path: Path) -> Generator[None]:
    try:
        yield
    except FormatError as error:
        raise StoreError(f"{path}: {error}") from None
