"""Write drafts as records: as `compiled.encode`, by `record.encode_around`."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.formats import properties, record, record_crc, sys_flag

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs
    from mqlake.dispatch.drafts import Drafts, Routes, Rows


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
    store_host = _part(routes, routes.hosts[-1])
    for number, row in enumerate(drafts.rows[first:], first):
        if not row["regular"]:
            return number, to
        queue, born = routes.queues[row["queue"]], routes.hosts[row["host"]]
        if queue["part_length"] < 0 or born["part_length"] < 0:
            return number, to
        texts = _span(drafts.texts, row, "properties")
        if append_crc:
            texts += record_crc.missing_separator(texts)
        crc_size = append_crc * record_crc.SIZE
        if append_crc and len(texts) + crc_size > properties.MAX_LENGTH:
            return number, to
        flags, body = int(row["sys_flag"]), _span(drafts.source, row, "body")
        is_queued = sys_flag.is_queued(flags)
        queue_offset = int(queue["next_offset"]) if is_queued else 0
        head = record.RecordHead(
            magic=int(queue["magic"]),
            queue_id=int(row["queue_id"]),
            flag=int(row["flag"]),
            queue_offset=queue_offset,
            physical_offset=base + to,
            sys_flag=flags,
            born_timestamp=int(row["born_timestamp"]) or now,
            born_host=_part(routes, born),
            store_timestamp=now,
            store_host=store_host,
            reconsume_times=int(row["reconsume_times"]),
            prepared_transaction_offset=int(row["prepared_transaction_offset"]),
        )
        parts = record.encode_around(head, body, _part(routes, queue), texts, crc_size)
        size = parts.size
        if size > end - to:
            return number, to
        queue["next_offset"] += is_queued
        data = b"".join((parts.size_field, parts.head, body, parts.tail))
        if append_crc:
            data += record_crc.encode(zlib.crc32(data))
        target[to : to + size] = memoryview(data)
        row["physical_offset"], row["queue_offset"], row["size"] = base + to, queue_offset, size
        to += size
    return len(drafts.rows), to


def properties_with_crc(texts: Bytes, rows: Rows) -> tuple[bool, int, int]:
    found = [texts[at : at + length].tobytes() for at, length in _spans(rows)]
    lengths = [len(one) + len(record_crc.missing_separator(one)) + record_crc.SIZE for one in found]
    brings = any(record_crc.FIRST in one for one in found)
    return brings, max(lengths, default=0), sum(lengths)


def state_crcs(buffer: Bytes, starts: Longs, sizes: Longs) -> None:
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        at, end = start + size - record_crc.SIZE, start + size
        buffer[at:end] = memoryview(record_crc.encode(zlib.crc32(buffer[start:at].data)))


def _spans(rows: Rows) -> Iterator[tuple[int, int]]:
    ats, lengths = rows["properties_at"].tolist(), rows["properties_length"].tolist()
    return zip(ats, lengths, strict=True)


def _span(data: Bytes, row: Rows, name: str) -> bytes:
    at = int(row[f"{name}_at"])
    return data[at : at + int(row[f"{name}_length"])].tobytes()


def _part(routes: Routes, route: Rows) -> bytes:
    return _span(routes.parts, route, "part")
