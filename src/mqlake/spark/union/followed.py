"""The stores that a table follows: where its rows of each log end, and what comes after."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mqlake.errors import FormatError, JobError
from mqlake.spark.follow.committed_end import CommittedEnd
from mqlake.spark.follow.identity import Follower, followers_of, identity_of
from mqlake.spark.follow.log_positions import LogPositions
from mqlake.spark.reading.conditions import Between, Selection
from mqlake.spark.source.offsets import subscription
from mqlake.spark.source.options import ReadOptions, read_options
from mqlake.spark.source.position import Position
from mqlake.spark.union.lake import Lake


class Followed(msgspec.Struct, frozen=True):
    """A store that a table follows.

    Attributes:
        store: its directory, or its URL.
        end: where the table's rows of its log end.
        selection: the messages of the log that the table follows and does not have yet.
        broker_name: the value of the column `brokerName`.
    """

    store: str
    end: CommittedEnd
    selection: Selection
    broker_name: str | None

    @property
    def start(self) -> int:
        """The physical offset at which the log has what the table has not."""
        return self.end.physical_offset


def followed(lake: Lake, options: ReadOptions) -> list[Followed]:
    """Return the stores that a table follows.

    Raises:
        FormatError: option path is given, and the table follows several stores.
        JobError: the table follows none, or does not say how far.
    """
    followers = followers_of(lake.root)
    if not followers:
        raise JobError(f"{lake.root}: nothing has been followed into this table")
    if options.path and len(followers) > 1:
        stores = ", ".join(sorted({one.store for one in followers.values()}))
        raise FormatError(
            f"option path: the table follows several stores ({stores}): leave path out to read "
            "all of them"
        )
    return [_followed(lake, options, *one) for one in followers.items()]


def _followed(lake: Lake, options: ReadOptions, id_: str, follower: Follower) -> Followed:
    follower = _complete(lake, follower)
    begin = None if follower.begin is None else Position.read(follower.begin)
    end = _end(lake, id_, follower)
    given = {"startingOffsets": "earliest", **(follower.source or {}), "path": follower.store}
    query = read_options(given, streaming=True)
    return Followed(
        options.path or follower.store,
        end,
        (
            *subscription(query),
            *(() if begin is None else begin.selection),
            Between("physicalOffset", end.physical_offset),
        ),
        options.broker_name or query.broker_name,
    )


def _complete(lake: Lake, follower: Follower) -> Follower:
    """Return what a table follows; tables of earlier versions leave it to the checkpoint."""
    if follower.source is not None:
        return follower
    identity = identity_of(Path(follower.checkpoint))
    if identity is None:
        raise JobError(
            f"{lake.root}: the table does not say what it follows of {follower.store}, and the "
            f"checkpoint {follower.checkpoint} is missing: run mqlake follow on it once"
        )
    return msgspec.structs.replace(follower, begin=identity.begin, source=identity.source)


def _end(lake: Lake, id_: str, follower: Follower) -> CommittedEnd:
    """Return where a follower's rows in a table end; before its first batch, where that begins."""
    found = lake.end(id_)
    if found is not None:
        return found
    positions = LogPositions(Path(follower.store), Path(follower.checkpoint), follower.begin)
    end = positions.end_of(lake.last_batch(id_))
    if end is None:
        raise JobError(
            f"{lake.root}: the table does not say how much of {follower.store} it has: it was "
            "written by an earlier mqlake; run mqlake follow on it once"
        )
    return CommittedEnd(end.physical_offset, end.fingerprint)
