"""Notes of followers of a table on an object store: in the table, and a copy of them here.

A table has a note of each store that it follows, so that no second checkpoint brings the same
messages again. All that reads or writes notes works on the copy, below the checkpoint.
"""

from __future__ import annotations

from mqlake.spark.follow.lake_files import S3
from mqlake.spark.follow.options import STATE, FollowOptions
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.object_target import open_target

FOLLOWERS = "followers"
"""In the state directory of a table: a file for each store that is followed."""


def fetch_notes(options: FollowOptions) -> None:
    """Make the copy of a table's notes what the table has.

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
        name = url.removeprefix(S3).rpartition("/")[2]
        if name.endswith(".json"):
            replace_file(own, name, options.files.read(url))


def put_note(options: FollowOptions, id_: str) -> None:
    """Put the note of a follower into the table; return once it is there."""
    if options.url is None:
        return
    name = f"{id_}.json"
    data = (options.out / STATE / FOLLOWERS / name).read_bytes()
    target = open_target(f"{options.url}/{STATE}/{FOLLOWERS}", options.storage)
    target.put(name, len(data), [data])
