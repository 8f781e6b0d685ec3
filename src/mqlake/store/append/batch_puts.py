"""Append the messages of a batch with one kernel call (`mqlake.dispatch.writing.encode`)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mqlake.dispatch.batch import Bytes
from mqlake.dispatch.drafts import Drafts, Routes
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.writing import encode
from mqlake.dispatch.writing.encode import QueueRoute
from mqlake.errors import FormatError
from mqlake.formats import properties, record, record_crc, sys_flag
from mqlake.formats.message_batch import decode_batch, encode_batch
from mqlake.store.append.checks import AppendChecks, Refusal, TopicPart, illegal, too_long
from mqlake.store.append.message import MessageBatch
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.queue_offsets import QueueOffsets

_LENGTH_SIZE = 2
_DELAY = properties.DELAY.encode()

# Bytes of scratch memory that are kept from one call to the next.
_MOST_KEPT = 1 << 20


class BatchPuts:
    """Put batches at the end of a log. For one thread."""

    def __init__(self, log: OwnedCommitLog, offsets: QueueOffsets, checks: AppendChecks) -> None:
        self._log, self._offsets, self._checks = log, offsets, checks
        self._scratch: Bytes = np.empty(0, np.uint8)

    @cached_property
    def _kernel(self) -> Kernel:
        return load()

    def put_batch(self, batch: MessageBatch, topic: TopicPart, now: int) -> PutResult:
        """Append all messages of a batch in one file.

        Raises:
            Refusal: MESSAGE_ILLEGAL: the batch is malformed, empty, too large, or of a kind that
                cannot be a batch.
            DiskError: there is no room on the disk, or no next file.
        """
        drafts, length = self._draft(batch)
        queue = batch.topic, batch.queue_id
        sender = self._checks.sender(batch.born_host)
        rows, store_host = drafts.rows, self._checks.store_host
        count = len(rows)
        each = record.HEAD_SIZES[sender.host_bits >> 4] + len(topic.data) + _LENGTH_SIZE
        total = count * each + int(rows["body_length"].sum()) + length
        self._checks.sizes(len(batch.body), total)
        self._checks.batch_size(total)
        queue_offset = self._offsets.next(*queue)
        routes = encode.make_routes(
            [QueueRoute(queue_offset, topic.magic, topic.data)], [sender.host, store_host]
        )
        self._write(drafts, routes, now, total)
        self._offsets.set(*queue, queue_offset + count)
        offsets = rows["physical_offset"].tolist()
        return PutResult(
            PutStatus.PUT_OK,
            offsets[0],
            total,
            queue_offset,
            now,
            count,
            store_host=store_host,
            offsets=offsets,
        )

    def _draft(self, batch: MessageBatch) -> tuple[Drafts, int]:
        """Return the messages, and the size of the properties in their records."""
        if batch.sys_flag & (sys_flag.TRANSACTION_MASK | sys_flag.INNER_BATCH):
            raise illegal("a batch can be neither part of a transaction nor an inner batch")
        data = batch.encoded_properties or b""
        if _DELAY in data and properties.DELAY in properties.decode_properties(data):
            raise illegal("a batch cannot be delayed")
        self._checks.sizes(len(batch.body), 0)
        drafts = encode.draft_batch(batch.body, self._kernel)
        if drafts is None:
            raise illegal(_fault(batch.body))
        brings, most, total = self._kernel.properties_with_crc(drafts.texts, drafts.rows)
        if brings:
            drafts = encode.draft_batch(_without_crcs(batch.body), self._kernel)
            assert drafts is not None
            _, most, total = self._kernel.properties_with_crc(drafts.texts, drafts.rows)
        if not self._checks.appends_crc:
            total = int(drafts.rows["properties_length"].sum())
        elif most > properties.MAX_LENGTH:
            raise too_long(most)
        if not len(drafts.rows):
            raise illegal("the batch contains no message")
        longest = int(drafts.rows["properties_length"].max())
        if longest > batch.longest_properties:
            most = batch.longest_properties
            reason = f"the properties of a message have {longest} bytes; the maximum is {most}"
            raise Refusal(PutStatus.PROPERTIES_SIZE_EXCEEDED, reason)
        try:
            for name in ("queue_id", "sys_flag", "born_timestamp", "reconsume_times"):
                drafts.rows[name] = getattr(batch, name)
        except OverflowError as error:
            raise illegal(f"a value does not fit into its field: {error}") from None
        return drafts, total

    def _write(self, drafts: Drafts, routes: Routes, now: int, size: int) -> None:
        """Append drafts, whose records have `size` bytes in all, in one file.

        Raises:
            DiskError: the disk refused the records; the log has not changed.
        """
        log, scratch = self._log, self._scratch_of(size)
        log.make_room(size)
        reached, end = encode.write_records(
            scratch,
            0,
            size,
            log.end,
            drafts,
            0,
            routes,
            now,
            self._kernel,
            append_crc=self._checks.appends_crc,
        )
        assert (reached, end) == (len(drafts.rows), size)
        # The records are not written in place: only `append` knows an order that a crash may
        # interrupt anywhere.
        log.append(scratch[:end].data)

    def _scratch_of(self, size: int) -> Bytes:
        if size > _MOST_KEPT:
            return np.empty(size, np.uint8)
        if len(self._scratch) < size:
            self._scratch = np.empty(size, np.uint8)
        return self._scratch


def _without_crcs(body: bytes) -> bytes:
    """Return a batch's body without the record CRCs in its messages."""
    return encode_batch(
        (
            part.flag,
            body[part.body_at : part.body_at + part.body_length],
            record_crc.drop(body[part.properties_at : part.properties_at + part.properties_length]),
        )
        for part in decode_batch(body)
    )


def _fault(body: bytes) -> str:
    try:
        list(decode_batch(body))
    except FormatError as error:
        return str(error)
    raise AssertionError("the kernels refuse a message that the format allows")
