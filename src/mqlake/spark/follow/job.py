"""Follow a store into a lake table, exactly once (docs/follow.md)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import ParamSpec

import msgspec

from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.local import Progress
from mqlake.lake.body_format import NEEDED as NEEDED_OF_BODIES
from mqlake.lake.follow.dead_letters import NEEDED, DeadLetterTable
from mqlake.lake.follow.log_positions import LogPositions, begin_of, stream_options_of
from mqlake.lake.follow.log_writing import LogWriting
from mqlake.lake.follow.upserts import NEEDED as NEEDED_OF_UPSERTS
from mqlake.lake.follow.upserts import Upserting, check_upsert
from mqlake.lake.followers.identity import CheckpointIdentity, begin_at, has_begun, held, note_query
from mqlake.lake.followers.kept_choices import with_broker_name, with_form, with_topics
from mqlake.lake.options import BATCH_BYTES, ENOUGH, FollowOptions, Format
from mqlake.lake.tables.opening import open_table
from mqlake.query.reading.log import logger
from mqlake.query.store.asked import missing
from mqlake.query.store.columns import COLUMNS
from mqlake.query.store.place import open_store
from mqlake.spark.failure import failures
from mqlake.spark.follow.body_columns import body_fields, typed
from mqlake.spark.follow.maintenance import Maintenance
from mqlake.spark.follow.micro_batch import FollowTotals, MicroBatches
from mqlake.spark.follow.query import TITLE, MicroBatchQuery, require_classic
from mqlake.spark.session import Session

log = logger()

_Arguments = ParamSpec("_Arguments")


class FollowReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one run of `follow`.

    Attributes:
        batches: micro-batches with messages.
        files: data files that were written, before small ones were merged.
        bytes_written: their size.
        files_merged: small files whose rows are in other files now.
        dead_letters: rows that were added to the table of dead letters.
    """

    store: str
    output: str
    format: str
    checkpoint: str
    batches: int
    messages: int
    files: int
    bytes_written: int
    files_merged: int
    dead_letters: int


@reports_disk_faults
def follow(
    session: Session,
    options: FollowOptions,
    stop: threading.Event | None = None,
    progress: Progress | None = None,
    turn: AbstractContextManager[object] | None = None,
    totals: FollowTotals | None = None,
) -> FollowReport:
    """Write the messages of a store to a table as they arrive; return when stopped or caught up.

    Args:
        stop: set it to end between two micro-batches.
        progress: called with how many bytes of the log are in the table, and of how many.
        turn: held while the table is changed, if several stores are followed into it.
        totals: counts what is done, for another thread to read.

    Raises:
        JobError: the table cannot be opened or written, or the checkpoint is not that of this
            store and table.
        StoreError, FormatError: the store cannot be read, or an option of the source is wrong.
    """
    require_classic(session.spark)
    options = with_body_fields(session, options)
    check_upsert(options)
    with held(options) as identity:
        waits = options.format is Format.PARQUET
        every = 1 if waits else options.compact_every
        options = with_form(with_broker_name(options, identity), identity)
        options = with_topics(options, identity)
        identity = _with_begin(options, identity)
        note_query(options, identity)
        query = _query_of(options, identity)
        _tell_missing(query)
        dead_letters = DeadLetterTable(options, session.engine, identity.id)
        turn = turn or nullcontext()
        with turn:
            table = open_table(options)
        engine = session.engine
        batches = MicroBatches(
            table=table,
            engine=engine,
            follower=identity.id,
            compact_every=every,
            positions=LogPositions(options.store, options.checkpoint, identity.begin),
            dead_letters=None if options.fails_on_loss else dead_letters,
            log=LogWriting(query, engine) if _is_direct(options) else None,
            upserting=Upserting(engine, options) if options.upsert_by is not None else None,
            totals=totals,
        )
        maintenance = Maintenance(batches, options)
        take, idle = _in_turn(turn, maintenance.take), _in_turn(turn, maintenance.while_idle)
        prepare = None if options.body is None else partial(typed, body=options.body)
        MicroBatchQuery(
            spark=session.spark,
            query=query,
            take=take,
            stop=stop or threading.Event(),
            progress=progress,
            idle=idle,
            prepare=prepare,
        ).run()
        with turn:
            if waits or (options.once and every):
                batches.compact(is_last=True)
            if options.once:
                maintenance.expire()
    return _report(options, batches.totals)


def _report(options: FollowOptions, done: FollowTotals) -> FollowReport:
    return FollowReport(
        store=str(options.store),
        output=options.place,
        format=options.format.value,
        checkpoint=str(options.checkpoint),
        batches=done.batches,
        messages=done.messages,
        files=done.files,
        bytes_written=done.bytes_written,
        files_merged=done.files_merged,
        dead_letters=done.dead_letters,
    )


def _in_turn(
    turn: AbstractContextManager[object], work: Callable[_Arguments, None]
) -> Callable[_Arguments, None]:
    def run(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> None:
        with turn:
            work(*arguments, **named)

    return run


def with_body_fields(session: Session, options: FollowOptions) -> FollowOptions:
    """Return options with the columns that bodies have, if they are decoded."""
    if options.body is None:
        return options
    with failures(TITLE):
        fields = body_fields(session.spark, options.body)
    return msgspec.structs.replace(options, body_fields=fields)


def _with_begin(options: FollowOptions, identity: CheckpointIdentity) -> CheckpointIdentity:
    """Return what a checkpoint belongs to, including where its first batch begins."""
    if has_begun(options, identity):
        return identity
    return begin_at(options, identity, begin_of(options))


def _tell_missing(query: FollowOptions) -> None:
    """Log which topics a query names that do not exist. They may be created later."""
    options = stream_options_of(query)
    with open_store(options.location) as store:
        for what in missing(store, options).values():
            log.warning("%s: %s", query.store, what)


def _is_direct(options: FollowOptions) -> bool:
    """Return whether tasks write the rows as they read them, without further processing."""
    return options.body is None and options.upsert_by is None


def _query_of(options: FollowOptions, identity: CheckpointIdentity) -> FollowOptions:
    """Return the query with all columns that the table and its dead letters need."""
    most = options.source.get("maxOffsetsPerTrigger")
    source = {
        **options.source,
        "failOnDataLoss": str(options.fails_on_loss).lower(),
        "minOffsetsPerTrigger": most or str(ENOUGH),
        "maxTriggerDelay": f"{round(options.target_lag * 1000)}ms",
    }
    if most is None and _is_direct(options):
        source["maxBytesPerTrigger"] = str(BATCH_BYTES)
    elif most is None:
        source["maxOffsetsPerTrigger"] = str(ENOUGH)
    if identity.begin is not None:
        source["startingPosition"] = msgspec.json.encode(identity.begin).decode()
    needed = {
        *NEEDED,
        *(NEEDED_OF_BODIES if options.body is not None else ()),
        *(NEEDED_OF_UPSERTS if options.upsert_by is not None else ()),
    }
    columns = tuple(name for name in COLUMNS if name in options.columns or name in needed)
    return msgspec.structs.replace(options, source=source, columns=columns)
