"""What the sink keeps beside a store: which epochs it holds, and the one that is being added.

In `.mqlake-sink/journal.json`, replaced in one step. A crash leaves `adding`: the log is cut back
to its `start` before anything else is written, unless the epoch counts as taken already.
"""

from __future__ import annotations

import msgspec

from mqlake.errors import StoreError
from mqlake.storage.durable import make_directories, replace_file
from mqlake.storage.protocol import Directory, OwnedDirectory
from mqlake.storage.read_file import read_file

DIRECTORY = ".mqlake-sink"
_PATH = f"{DIRECTORY}/journal.json"


class Adding(msgspec.Struct, frozen=True, rename="camel"):
    """A commit that has begun.

    Attributes:
        start: physical offset where the log ended before.
        store_timestamp: milliseconds; all its messages have it.
        is_taken: all messages are on the disk; only the store's clean stop is missing.
    """

    start: int
    store_timestamp: int
    is_taken: bool = False


class Journal(msgspec.Struct, frozen=True, rename="camel"):
    """The state of the sink of one store.

    Attributes:
        epochs: the last batch that was taken of each streaming query, by the query's id.
    """

    epochs: dict[str, int] = {}
    adding: Adding | None = None

    def has(self, query: str, epoch: int) -> bool:
        """Say whether an epoch was taken."""
        return self.epochs.get(query, -1) >= epoch


def read_journal(directory: Directory) -> Journal:
    """Return the journal; an empty one where there is none.

    Raises:
        StoreError: it cannot be read.
    """
    if (data := read_file(directory, _PATH)) is None:
        return Journal()
    try:
        return msgspec.json.decode(data, type=Journal)
    except msgspec.MsgspecError as error:
        raise StoreError(f"{directory.describe(_PATH)}: {error}") from None


def write_journal(directory: OwnedDirectory, journal: Journal) -> None:
    """Replace the journal; return once it is on the disk.

    Raises:
        DiskError: the system refused it.
    """
    make_directories(directory, DIRECTORY)
    replace_file(directory, _PATH, msgspec.json.encode(journal))
