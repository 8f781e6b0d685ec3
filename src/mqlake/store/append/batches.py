"""Append the messages of a batch with one kernel call (`mqlake.dispatch.writing.encode`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from mqlake.dispatch.batch import Bytes
from mqlake.dispatch.drafts import Drafts, Routes
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.writing import encode
from mqlake.dispatch.writing.encode import QueueRoute
from mqlake.errors import DiskError, FormatError
from mqlake.formats import properties, record, record_crc, sys_flag
from mqlake.formats.file_name import MAX_NAME_BYTES
from mqlake.formats.message_batch import decode_batch, encode_batch
from mqlake.store.append.checks import AppendChecks, Refusal, TopicPart, illegal, too_long
from mqlake.store.append.message import MessageBatch
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.queue_offsets import QueueOffsets

_LENGTH_SIZE = 2
# Maximum bytes of a record in addition to its message.
MOST_BESIDES = record.HEAD_SIZES[-1] + 2 * _LENGTH_SIZE + MAX_NAME_BYTES + 64 + 1 + record_crc.SIZE

_DELAY = properties.DELAY.encode()

# Bytes of scratch memory that are kept from one call to the next.
_MOST_KEPT = 1 << 20


class Batches:
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
        self._log.make_room(total)
        written = self._write(drafts, routes, now, total)
        assert written == count
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

    def put_drafts(
        self,
        drafts: Drafts,
        name: str,
        queue_ids: Sequence[int],
        born_host: str,
        now: int,
        *,
        whole: bool,
    ) -> int:
        """Append messages of one topic from one host; return how many, from the first on.

        With `whole`, all of them are appended in one file, or none. A message longer than
        `maxMessageSize` ends what is appended.

        Raises:
            Refusal: MESSAGE_ILLEGAL: the topic or the host is refused.
        """
        longest = self._checks.longest_body
        if len(drafts.source) > longest:  # Otherwise no body in it can be too long.
            too_long = drafts.rows["body_length"] > longest
            if too_long.any():
                fitting = 0 if whole else int(too_long.argmax())
                drafts = drafts._replace(rows=drafts.rows[:fitting])
        topic, sender = self._checks.topic(name), self._checks.sender(born_host)
        queues = [(name, queue_id) for queue_id in queue_ids]
        routes = encode.make_routes(
            [QueueRoute(self._offsets.next(*queue), topic.magic, topic.data) for queue in queues],
            [sender.host, self._checks.store_host],
        )
        most = len(drafts.source) + len(drafts.rows) * MOST_BESIDES
        reached = self._write(drafts, routes, now, most, whole=whole)
        for queue, next_offset in zip(queues, routes.queues["next_offset"].tolist(), strict=True):
            if next_offset:
                self._offsets.set(*queue, next_offset)
        return reached

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

    def _write(
        self, drafts: Drafts, routes: Routes, now: int, most: int, *, whole: bool = False
    ) -> int:
        """Write drafts into the current file; return how many, from the first on.

        Args:
            most: bytes that the records need.
            whole: nothing is written unless all certainly fit.

        Raises:
            DiskError: the disk refused the records; nothing has changed.
        """
        log = self._log
        room = log.room_for(most)
        if not room or (whole and room < most):
            return 0
        scratch, next_offsets = self._scratch_of(room), routes.queues["next_offset"].copy()
        reached, end = encode.write_records(
            scratch,
            0,
            room,
            log.end,
            drafts,
            0,
            routes,
            now,
            self._kernel,
            append_crc=self._checks.appends_crc,
        )
        if end:
            # The records are not written in place: only `append` knows an order that a crash may
            # interrupt anywhere.
            try:
                log.append(scratch[:end].data)
            except DiskError:
                routes.queues["next_offset"] = next_offsets
                raise
        return reached

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
