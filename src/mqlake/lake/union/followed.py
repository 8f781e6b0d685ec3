"""The stores that a table follows: where its rows of each log end, and the log after that."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mqlake.errors import FormatError, JobError
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.follow.log_positions import LogPositions
from mqlake.lake.followers.identity import Follower, followers_of, identity_of
from mqlake.lake.followers.kept_choices import is_plain
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.union.lake import Lake
from mqlake.lake.union.opening import open_lake
from mqlake.query.reading.conditions import Between, Selection
from mqlake.query.reading.directory import Location
from mqlake.query.store.offsets import subscription
from mqlake.query.store.options import StoreReadOptions, read_options
from mqlake.query.store.position import StorePosition


class FollowedStore(msgspec.Struct, frozen=True):
    """A store that a table follows.

    Attributes:
        location: its location, with its archive if the query names one.
        end: where the table's rows of its log end.
        selection: the messages of the log that the table follows but does not have yet.
        broker_name: the value of the column `brokerName`.
        is_plain: whether the table's bodies are decompressed.
    """

    location: Location
    end: CommittedEnd
    selection: Selection
    broker_name: str | None
    is_plain: bool

    @property
    def store(self) -> str:
        """The name of the store in messages."""
        return self.location.name

    @property
    def start(self) -> int:
        """The physical offset from which the log is read."""
        return self.end.physical_offset


class _Done(msgspec.Struct, frozen=True):
    """The newest complete batch: all its messages are in tables that are opened now."""

    batch: int
    end: CommittedEnd


def open_followed(options: StoreReadOptions) -> tuple[Lake, list[FollowedStore]]:
    """Open the newest version of the table of a query; return it with the stores that it follows.

    Raises:
        FormatError: option path is given, but the table follows several stores.
        JobError: the table follows no store, or does not record how much it has.
    """
    lake = open_table(options)
    noted = followers_of(lake.root, lake_files(options))
    followers = {id_: _complete(lake, one) for id_, one in noted.items()}
    if not followers:
        raise JobError(f"{lake.root}: mqlake follow has not written to this table")
    if any(one.upsert_by for one in followers.values()):
        raise FormatError(
            f"{lake.root}: a table with --upsert-by has the newest messages of keys, so the "
            "log cannot continue it: read the table alone"
        )
    if options.path and len(followers) > 1:
        stores = ", ".join(sorted({one.store for one in followers.values()}))
        raise FormatError(
            f"option path: the table follows several stores ({stores}): leave out path to "
            "read all of them"
        )
    done = {id_: _newest_done(id_, one) for id_, one in followers.items()}
    if any(one and one.batch > lake.last_batch(id_) for id_, one in done.items()):
        lake = open_table(options)
    stores = [_followed(lake, options, id_, one, done[id_]) for id_, one in followers.items()]
    return lake, stores


def open_table(options: StoreReadOptions) -> Lake:
    """Open the newest version of the table of a query."""
    assert options.table is not None
    return open_lake(options.table, options.catalog, options.catalog_name, lake_files(options))


def lake_files(options: StoreReadOptions) -> LakeFiles:
    """Return what reads the files of the table of a query."""
    return LakeFiles(options.location.settings)


def _newest_done(id_: str, follower: Follower) -> _Done | None:
    """Return the newest complete batch; None if the checkpoint cannot be read here."""
    checkpoint = Path(follower.checkpoint)
    identity = identity_of(checkpoint)
    if identity is None or identity.id != id_:
        return None
    positions = LogPositions(Path(follower.store), checkpoint, follower.begin)
    batch = positions.last_done()
    end = positions.end_of(batch)
    return end and _Done(batch, CommittedEnd(end.physical_offset, end.fingerprint))


def _followed(
    lake: Lake, options: StoreReadOptions, id_: str, follower: Follower, done: _Done | None
) -> FollowedStore:
    begin = None if follower.begin is None else StorePosition.read(follower.begin)
    is_ahead = done is not None and done.batch > lake.last_batch(id_)
    end = done.end if done is not None and is_ahead else _end(lake, id_, follower)
    given = {"startingOffsets": "earliest", **(follower.source or {}), "path": follower.store}
    query = read_options(given, streaming=True)
    return FollowedStore(
        options.location
        if options.path
        else msgspec.structs.replace(options.location, path=follower.store),
        end,
        (
            *subscription(query),
            *(() if begin is None else begin.selection),
            Between("physicalOffset", end.physical_offset),
        ),
        options.broker_name or query.broker_name,
        is_plain(follower.source or {}),
    )


def _complete(lake: Lake, follower: Follower) -> Follower:
    """Return what a table follows; for tables of earlier versions, the checkpoint tells it."""
    if follower.source is not None:
        return follower
    identity = identity_of(Path(follower.checkpoint))
    if identity is None:
        raise JobError(
            f"{lake.root}: the table does not record what it follows of {follower.store}, and "
            f"the checkpoint {follower.checkpoint} is missing: run mqlake follow on it once"
        )
    return msgspec.structs.replace(follower, begin=identity.begin, source=identity.source)


def _end(lake: Lake, id_: str, follower: Follower) -> CommittedEnd:
    """Return where a follower's rows in a table end; before its first batch, where that begins."""
    found = lake.end(id_)
    if found is not None and found.batch in (None, lake.last_batch(id_)):
        return found  # else an earlier mqlake, which notes no ends, has committed since
    positions = LogPositions(Path(follower.store), Path(follower.checkpoint), follower.begin)
    end = positions.end_of(lake.last_batch(id_))
    if end is None:
        raise JobError(
            f"{lake.root}: the table does not record how much of {follower.store} it has, "
            "because an earlier mqlake wrote it: run mqlake follow on it once"
        )
    return CommittedEnd(end.physical_offset, end.fingerprint)
