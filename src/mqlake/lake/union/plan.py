"""Plan a query over a table and the logs that it follows, in the driver.

The table's version is chosen first, and the logs are examined after that. The version contains the
messages of a log before the end that it states, and none after it, whatever `follow` commits,
merges or removes meanwhile. So each message is read once.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.jobs.local import cores
from mqlake.lake.union.followed import FollowedStore, lake_files, open_followed
from mqlake.lake.union.lake import Lake, LakeFile
from mqlake.lake.union.limits import limits
from mqlake.lake.union.read import LakeTask
from mqlake.query.reading.conditions import Selection, wants_topic
from mqlake.query.reading.log import logger
from mqlake.query.reading.losses import absent, data_loss
from mqlake.query.reading.shares import share_count
from mqlake.query.store.access import access
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.asked import missing
from mqlake.query.store.fingerprint import fingerprint
from mqlake.query.store.living import living
from mqlake.query.store.offsets import subscription
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.place import OpenStore
from mqlake.query.store.plan import StoreTask, plan_tasks
from mqlake.query.store.tail import LogTail

log = logger()

_MOST_LOOKS = 10
"""Maximum versions of a table that a plan tries, if the log after each is deleted during
planning.
"""

UnionTask = LakeTask | StoreTask


class _LogDeletedError(Exception):
    """The log begins after the end of a version: a newer version has the missing messages."""


def plan_union(
    options: StoreReadOptions, columns: Sequence[str], pushed: Selection = ()
) -> list[UnionTask]:
    """Plan a batch query.

    Args:
        columns: the columns that the query reads.
        pushed: conditions from Spark's filters.

    Raises:
        FormatError: the table lacks a column, or does not follow a topic.
        JobError: the table does not exist, or does not record what it follows.
        StoreError: a log is missing, or is not the one that the table follows; or messages are
            lost, unless that is tolerated.
    """
    seen: list[int] = []
    for _ in range(_MOST_LOOKS):
        lake, stores = open_followed(options)
        ends = [one.start for one in stores]
        try:
            return _plan(lake, stores, options, columns, pushed, is_newest=ends == seen)
        except _LogDeletedError:
            seen = ends
    raise StoreError(f"{options.table}: the log is deleted faster than it can be read")


def _plan(
    lake: Lake,
    stores: list[FollowedStore],
    options: StoreReadOptions,
    columns: Sequence[str],
    pushed: Selection,
    *,
    is_newest: bool,
) -> list[UnionTask]:
    selection = (*subscription(options), *limits(options), *pushed)
    _check_columns(lake, columns, selection)
    files = lake.files(selection)
    decompress = options.decompress and "sysFlag" in lake.columns
    expands = decompress and not all(one.is_plain for one in stores)
    tasks: list[UnionTask] = list(_shares(files, options, selection, decompress=expands))
    _check_followed(lake, stores, options)
    lacking: list[dict[str, str]] = []
    for one in stores:
        own = msgspec.structs.replace(
            options,
            location=one.location,
            broker_name=one.broker_name,
            # The log continues the table: its rows have the table's form.
            decompress=decompress or one.is_plain,
        )
        tail = LogTail(one.location)
        tail.known = one.start
        with tail.look() as (store, end):
            _check_log(store, one, end)
            if one.start < store.log.min_offset:
                if not is_newest:
                    raise _LogDeletedError
                _tell_loss(own, one, store.log.min_offset)
            lacking.append(_missing(lake, files, store, own))
            if one.start < end:
                tasks += _log_tasks(store, end, own, (*one.selection, *selection))
        log.info("%s: version up to %d, log from there to %d", one.store, one.start, end)
    for name in sorted(set[str].intersection(*map(set, lacking))):
        absent(options, f"{', '.join(one.store for one in stores)}: {lacking[0][name]}")
    log.info("%s: %d files, %d tasks", lake.root, len(files), len(tasks))
    return tasks


def _check_columns(lake: Lake, columns: Sequence[str], selection: Selection) -> None:
    from mqlake.lake.union.row_filter import columns_of

    for name in [*columns, *sorted(columns_of(selection))]:
        if name not in lake.columns:
            raise FormatError(f"{lake.root}: the table has no column {name}")


def _shares(
    files: list[LakeFile], options: StoreReadOptions, selection: Selection, *, decompress: bool
) -> list[LakeTask]:
    """Share files among tasks by their sizes."""
    total = sum(file.size for file in files)
    count = share_count(total, cores(), options.min_partitions)
    goal = -(-total // count) or 1
    shares: list[list[LakeFile]] = [[]]
    size = 0
    for file in files:
        if size >= goal:
            shares.append([])
            size = 0
        shares[-1].append(file)
        size += file.size
    lake = lake_files(options)
    return [LakeTask(tuple(share), selection, decompress, lake) for share in shares if share]


def _log_tasks(
    store: OpenStore, end: int, options: StoreReadOptions, selection: Selection
) -> list[StoreTask]:
    boundaries = Boundaries(store, end)
    found = access.choose(
        store, boundaries, selection, options.access_path, is_split=options.decompress
    )
    selection = (*selection, *living(store))
    return plan_tasks(store, boundaries, options, selection, found.stretches)


def _check_log(store: OpenStore, one: FollowedStore, end: int) -> None:
    if end < one.start:
        raise StoreError(
            f"{one.store}: the log ends at {end}, but the table has it up to {one.start}: the "
            "log was cut, or is another one"
        )
    expected, found = one.end.fingerprint, fingerprint(store.log, one.start)
    if expected is not None and found is not None and found != expected:
        raise StoreError(
            f"{one.store}: the log before physical offset {one.start} is not the one that the "
            "table has: the store was created again, or its log was cut and written again; "
            "follow it into another table"
        )


def _tell_loss(options: StoreReadOptions, one: FollowedStore, begin: int) -> None:
    data_loss(
        options,
        f"{one.store}: the log begins at {begin}, but the table has it up to {one.start}: the "
        "messages in between were deleted before mqlake follow read them",
    )


def _check_followed(lake: Lake, stores: list[FollowedStore], options: StoreReadOptions) -> None:
    """Check that the table follows the topics that a query names in one of its stores.

    Raises:
        FormatError: the table does not follow a topic.
    """
    named = {*(options.topics or ()), *(topic for topic, _ in options.queues or ())}
    for topic in sorted(named):
        if not any(wants_topic(one.selection, topic) for one in stores):
            raise FormatError(f"{lake.root}: the table does not follow topic {topic!r}")


def _missing(
    lake: Lake, files: list[LakeFile], store: OpenStore, options: StoreReadOptions
) -> dict[str, str]:
    """Return what options name but neither the table nor a store has (`missing`)."""
    named = {*(options.topics or ()), *(topic for topic, _ in options.queues or ())}
    there = {file.topic for file in files}
    there |= {topic for topic in named - there if lake.has_topic(topic)}
    topics = [topic for topic in options.topics or () if topic not in there]
    queues = [queue for queue in options.queues or () if queue[0] not in there]
    asked = msgspec.structs.replace(
        options,
        topics=tuple(topics) or None,
        queues=tuple(queues) or None,
        topic_pattern=None if files else options.topic_pattern,
    )
    return missing(store, asked)
