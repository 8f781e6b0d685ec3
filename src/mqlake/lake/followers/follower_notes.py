"""Notes about followers of a table on an object store: in the table, and a local copy.

A table has a note for each store that it follows, so that no second checkpoint writes the same
messages again. All code that reads or writes notes uses the copy, below the checkpoint.
"""

from __future__ import annotations

from mqlake.lake.options import STATE, FollowOptions
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.object_target import open_target

FOLLOWERS = "followers"
"""In the state directory of a table: a file for each followed store."""


def fetch_notes(options: FollowOptions) -> None:
    """Replace the copy of a table's notes by the table's current notes.

    Raises:
        StoreError: the object store does not answer.
    """
    if options.url is None:
        return
    own = LocalOwnedDirectory.make(options.out / STATE / FOLLOWERS)
    for path in (options.out / STATE / FOLLOWERS).glob("*.json"):
        path.unlink()
    place = f"{options.url}/{STATE}/{FOLLOWERS}"
    for url, _ in options.files.walk(place):
        name = url.rpartition("/")[2]
        if name.endswith(".json"):
            replace_file(own, name, options.files.read(url))


def put_note(options: FollowOptions, id_: str) -> None:
    """Upload the note of a follower to the table; return once it is stored."""
    if options.url is None:
        return
    name = f"{id_}.json"
    data = (options.out / STATE / FOLLOWERS / name).read_bytes()
    target = open_target(f"{options.url}/{STATE}/{FOLLOWERS}", options.storage)
    target.put(name, len(data), [data])
