"""The sink's journal beside a store: the epochs in the store, and the one that is being added.

The file is `.mqlake-sink/journal.json`, which is replaced atomically. A crash leaves `adding`: the
log is then cut back to its `start` before anything else is written, unless the epoch is already
marked as complete.
"""

from __future__ import annotations

import msgspec

from mqlake.errors import StoreError
from mqlake.storage.durable import make_directories, replace_file
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.storage.protocol import Directory, OwnedDirectory
from mqlake.storage.read_file import read_file

DIRECTORY = ".mqlake-sink"
_PATH = f"{DIRECTORY}/journal.json"
_BEGUN = f"{DIRECTORY}/begun.json"


class Adding(msgspec.Struct, frozen=True, rename="camel"):
    """A commit that has begun.

    Attributes:
        start: physical offset of the log's end before the commit.
        store_timestamp: the store time of all its messages, in milliseconds.
        is_taken: whether all messages are durable, and only the store's clean stop is missing.
    """

    start: int
    store_timestamp: int
    is_taken: bool = False


class Journal(msgspec.Struct, frozen=True, rename="camel"):
    """The state of the sink of one store.

    Attributes:
        epochs: the last complete batch of each streaming query, by the query's id.
    """

    epochs: dict[str, int] = {}
    adding: Adding | None = None

    def has(self, query: str, epoch: int) -> bool:
        """Return whether an epoch is in the store."""
        return self.epochs.get(query, -1) >= epoch


def read_journal(directory: Directory) -> Journal:
    """Return the journal; an empty one if there is no file.

    Raises:
        StoreError: the journal cannot be read.
    """
    if (data := read_file(directory, _PATH)) is None:
        return Journal()
    try:
        return msgspec.json.decode(data, type=Journal)
    except msgspec.MsgspecError as error:
        raise StoreError(f"{directory.describe(_PATH)}: {error}") from None


def write_begun(directory: OwnedDirectory, journal: Journal) -> None:
    """Write the journal of a commit that begins, and a copy that `restore_begun` needs.

    Raises:
        DiskError: the system refused the operation.
    """
    make_directories(directory, DIRECTORY)
    replace_file(directory, _BEGUN, msgspec.json.encode(journal))
    write_journal(directory, journal)


def restore_begun(directory: OwnedDirectory) -> None:
    """Replace the journal by the copy of `write_begun`, which takes neither room nor a descriptor.

    Raises:
        DiskError: the system refused the operation.
    """
    directory.replace(_BEGUN, _PATH)
    directory.sync_directory(DIRECTORY)


def write_journal(directory: OwnedDirectory, journal: Journal) -> None:
    """Replace the journal; return once it is durable. If no commit is open, remove the copy.

    Raises:
        DiskError: the system refused the operation.
    """
    make_directories(directory, DIRECTORY)
    replace_file(directory, _PATH, msgspec.json.encode(journal))
    if journal.adding is None:
        directory.remove(_BEGUN)


def forget(directory: OwnedDirectory, adding: Adding | None) -> None:
    """Remove a commit from the journal after its store was closed.

    The store belongs to nobody since then, so another process may have begun a commit of its own.
    The journal of that one stays as it is.

    Raises:
        StoreError: another process owns the store, and removes the commit itself.
        DiskError: the system refused the operation.
    """
    with directory.own(LOCK_NAME):
        journal = read_journal(directory)
        if adding is not None and journal.adding == adding:
            write_journal(directory, Journal(journal.epochs))
