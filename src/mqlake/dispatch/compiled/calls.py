"""Call the compiled kernels as `mqlake.dispatch.kernel.Kernel`, with arrays taken from objects."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import secrets

import numpy as np

from mqlake.dispatch.answers import Followed, MessageColumns, SearchEnd, Walk
from mqlake.dispatch.batch import Batch, Bytes, Ints, Longs, Window
from mqlake.dispatch.columns import KeyColumns, RecordColumns
from mqlake.dispatch.compiled import adjacent as _adjacent
from mqlake.dispatch.compiled import describe as _describe
from mqlake.dispatch.compiled import encode as _encode
from mqlake.dispatch.compiled import index_entries as _index_entries
from mqlake.dispatch.compiled import messages as _messages
from mqlake.dispatch.compiled import packed as _packed
from mqlake.dispatch.compiled import queue_entries as _queue_entries
from mqlake.dispatch.compiled import queue_read as _queue_read
from mqlake.dispatch.compiled import queues as _queues
from mqlake.dispatch.compiled import record as _record
from mqlake.dispatch.compiled import record_crc as _record_crc
from mqlake.dispatch.compiled import torn as _torn
from mqlake.dispatch.compiled import values as _values
from mqlake.dispatch.drafts import Drafts, Routes
from mqlake.dispatch.queue_read import TOPIC_LEAD, LogPart, ReadLimits, Wanted
from mqlake.dispatch.queue_table import QueueTable
from mqlake.dispatch.value_columns import (
    Keys,
    OptionalTexts,
    Pairs,
    Texts,
    Times,
    Values,
)

_SEED = np.uint64(secrets.randbits(64))
"""Of the hash over property names: unknown to those who write logs."""

adjacent = _adjacent.adjacent
locate = _adjacent.locate
copy_records = _queue_read.copy_records
draft_batch = _encode.draft_batch
packed = _packed.packed
state_crcs = _record_crc.state_crcs
first_torn = _torn.first_torn
properties_with_crc = _record_crc.properties_with_crc


def walk(window: Window, at: int, stop: int, records: RecordColumns, *, check_crc: bool) -> Walk:
    return Walk(
        *_record.walk(
            window.buffer,
            at,
            window.length,
            stop,
            window.data_end,
            window.base,
            check_crc,
            records,
        )
    )


def search(window: Window, at: int, stop: int, allowance: int) -> SearchEnd:
    return SearchEnd(
        *_record.search(
            window.buffer,
            at,
            window.length,
            stop,
            window.data_end,
            window.segment_end,
            window.base,
            allowance,
        )
    )


def describe(
    buffer: Bytes,
    records: RecordColumns,
    keys: KeyColumns,
    table: QueueTable,
    delay_levels: Longs,
    *,
    hash_keys: bool,
    index_tags: bool,
) -> int:
    table.reserve(len(records), int(records["topic_length"].sum()))
    reserve_slots(table, len(table) + len(records))
    return _describe.describe(
        buffer,
        records,
        keys,
        table.slots,
        table.queues,
        table.arena,
        table.fill,
        table.seed,
        delay_levels,
        hash_keys,
        index_tags,
    )


def group(records: RecordColumns, queues: int) -> tuple[Bytes, Longs, Longs]:
    return _queue_entries.group(records, queues)


def reserve_slots(table: QueueTable, queues: int) -> None:
    """Keep at least half of the slots empty, so that every search in them ends."""
    if 2 * queues > len(table.slots):
        table.slots = np.zeros(1 << (2 * queues).bit_length(), np.int32)
        _queues.fill_slots(table.slots, table.queues, table.arena, len(table), table.seed)


def follow(
    entries: Bytes, first: int, part: LogPart, wanted: Wanted, limits: ReadLimits, rows: Longs
) -> Followed:
    return Followed(
        *_queue_read.follow(
            entries,
            first,
            part.buffer,
            part.base,
            part.low,
            part.high,
            wanted.padded_topic,
            TOPIC_LEAD,
            wanted.queue_id,
            wanted.by_code,
            wanted.codes,
            *limits,
            wanted.crc,
            rows,
        )
    )


def insert_entries(
    buffer: Bytes,
    slots: int,
    number: int,
    begin: int,
    hashes: Ints,
    offsets: Longs,
    timestamps: Longs,
) -> int:
    return _index_entries.insert(buffer, slots, number, begin, hashes, offsets, timestamps)


def lookup_entries(
    buffer: Bytes, slots: int, limit: int, hashes: Ints, begin: int, end: int, most: int
) -> tuple[Ints, Longs]:
    return _index_entries.lookup(buffer, slots, limit, hashes, begin, end, most)


def relink(buffer: Bytes, slots: int, count: int) -> tuple[int, int, int, int, int]:
    return _index_entries.relink(buffer, slots, count)


def values(batch: Batch, chosen: int, times: Times) -> Values:
    ints, longs, texts, are_text, tags, unique_keys, keys, pairs = _values.values(
        batch.buffer,
        batch.base,
        batch.records,
        chosen,
        times.first,
        times.last,
        times.per_millisecond,
        _SEED,
    )
    return Values(
        ints,
        longs,
        tuple(Texts(*each) for each in texts),
        are_text,
        OptionalTexts(*tags),
        OptionalTexts(*unique_keys),
        Keys(*keys),
        Pairs(*pairs),
    )


def message_columns(
    buffer: Bytes, at: Longs, sizes: Longs, head: Bytes, spans_at: int
) -> MessageColumns:
    return MessageColumns(*_messages.columns(buffer, at, sizes, head, spans_at, _SEED))


def write_records(
    target: Bytes,
    to: int,
    end: int,
    base: int,
    drafts: Drafts,
    first: int,
    routes: Routes,
    now: int,
    append_crc: int,
) -> tuple[int, int]:
    return _encode.write_records(
        target,
        to,
        end,
        base,
        drafts.source,
        drafts.texts,
        drafts.rows,
        first,
        routes.queues,
        routes.hosts,
        routes.parts,
        now,
        append_crc,
    )
