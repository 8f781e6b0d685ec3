"""Append messages to the commit log: checks, queue offsets, records (docs/live-store.md).

Upstream: `DefaultMessageStore.asyncPutMessage`, `CommitLog.asyncPutMessage`, `MessageExtEncoder`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

from mqlake.errors import DiskError, FormatError
from mqlake.formats import record, record_crc, sys_flag
from mqlake.formats.record import AroundBody
from mqlake.storage.clock import Clock
from mqlake.store.append.batch_puts import BatchPuts
from mqlake.store.append.checks import (
    AppendChecks,
    Refusal,
    TopicPart,
    encode_properties,
    illegal,
    wrong_type,
)
from mqlake.store.append.inner_batches import InnerBatches
from mqlake.store.append.joined_crc import joined_crc
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.outside_puts import OutsidePuts
from mqlake.store.append.packed_puts import PackedPuts, PutOne
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.live_settings import Current
from mqlake.store.log.owned_log import NextFileError, OwnedCommitLog
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.settings import StoreSettings

_LENGTH_SIZE = 2
_OK = PutStatus.PUT_OK
_UNQUEUED_BIT = sys_flag.TRANSACTION_PREPARED & sys_flag.TRANSACTION_ROLLBACK
_NOT_APPENDING = -1
_LONG = 256 << 10
"""Bytes of a record that is written by calls, and whose CRC is put together."""


class Appender:
    """Put messages at the end of a log.

    A message that is refused, or fails, changes neither the log's end nor a queue offset. That is a
    result, never an exception. For one thread, except `answer_if_busy`.

    Args:
        has_batches: returns whether a topic's queues are batch consume queues.

    Attributes:
        packed: puts usual messages, faster.
        outside: for a caller that writes records itself.
    """

    def __init__(
        self,
        log: OwnedCommitLog,
        offsets: QueueOffsets,
        settings: Current[StoreSettings],
        clock: Clock,
        has_batches: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._log, self._offsets, self._now = log, offsets, clock.milliseconds
        self._settings = settings
        self._checks = checks = AppendChecks(settings, log.largest_record)
        self.packed = PackedPuts(log, offsets, checks, settings, clock)
        self.outside = OutsidePuts(log, offsets, checks)
        self._batches = BatchPuts(log, offsets, checks)
        self._inner = InnerBatches(has_batches)
        self._since = _NOT_APPENDING
        self._forces_crc = settings.now.force_verify_prop_crc

    def shut_down(self, reason: str = "the store is shut down") -> None:
        """Accept no more messages, for this reason."""
        self._checks.shut_down(reason)

    def set_not_writable(self, reason: str | None) -> None:
        """Refuse messages because the disk is full or has failed; None: accept them again."""
        self._checks.set_not_writable(reason)

    def answer_if_busy(self, what: Message | MessageBatch) -> PutResult | None:
        """Answer a put of another thread, which need not wait for a put that takes long.

        None if no append has been running for longer than `osPageCacheBusyTimeOutMills`.
        """
        since, longest = self._since, self._settings.now.os_page_cache_busy_time_out_mills
        if since == _NOT_APPENDING or self._now() - since <= longest:
            return None
        try:
            self._topic(what.topic, what.queue_id)
        except (Refusal, AttributeError, TypeError) as error:
            return _answer(error, what)
        return PutResult(
            PutStatus.OS_PAGE_CACHE_BUSY,
            reason="an earlier append is slow (osPageCacheBusyTimeOutMills)",
        )

    def put(self, message: Message) -> PutResult:
        """Append one message."""
        if (result := self.packed.put(message, 1)) is not None:
            return result
        return self._put_alone(message, self._checks.crc_size)

    def put_again(self, message: Message) -> PutResult:
        """Append a message that was accepted before, perhaps with a larger `maxMessageSize`."""
        return self._put_alone(message, self._checks.crc_size, is_again=True)

    def put_again_without_crc(self, message: Message) -> PutResult:
        """Append a message that leaves no room for the record CRC, as a store without CRCs accepted
        it.

        A message that recovery would consider torn without its CRC is refused.
        """
        properties = message.encoded_properties or b""
        if self._forces_crc or not record_crc.may_be_left_out(properties):
            reason = "the properties leave no room for the record CRC, which recovery requires"
            return PutResult(PutStatus.PROPERTIES_SIZE_EXCEEDED, reason=reason)
        return self._put_alone(message, 0, is_again=True)

    def _put_alone(self, message: Message, crc_size: int, *, is_again: bool = False) -> PutResult:
        try:
            return self._put(message, crc_size, is_again=is_again)
        except (Refusal, DiskError, AttributeError, TypeError) as error:
            return _answer(error, message)
        finally:
            self._since = _NOT_APPENDING

    def put_many(
        self, messages: Sequence[Message], put_one: PutOne | None = None
    ) -> list[PutResult]:
        """Append messages of any topics and queues, each as `put` would.

        Args:
            put_one: puts those that are unusual, or may ask for a delay; None for `put`.
        """
        self._since = self._now()
        try:
            return self.packed.put_many(messages, put_one or self.put)
        finally:
            self._since = _NOT_APPENDING

    def put_batch(self, batch: MessageBatch) -> PutResult:
        """Append all messages of a batch consecutively in one file, or none of them."""
        try:
            topic = self._topic(batch.topic, batch.queue_id)
            self._since = self._now()
            if batch.is_inner:
                return self._put_inner(batch)
            return self._batches.put_batch(batch, topic, self._since)
        except (Refusal, DiskError, AttributeError, TypeError) as error:
            return _answer(error, batch)
        finally:
            self._since = _NOT_APPENDING

    def _put_inner(self, batch: MessageBatch) -> PutResult:
        count = self._inner.check(batch)
        queue_offset = self._offsets.next(batch.topic, batch.queue_id)
        message = self._inner.message(batch, count, queue_offset)
        return self._put(message, self._checks.crc_size, inner=count)

    def _put(
        self, message: Message, crc_size: int, *, is_again: bool = False, inner: int = 0
    ) -> PutResult:
        """Args: `inner`: the number of messages of an inner batch; 0 for a message that is not
        one.
        """
        checks, body, flags = self._checks, message.body, message.sys_flag
        topic, queue_id = message.topic, message.queue_id
        if checks.refusal is not None or queue_id < 0:
            self._topic(topic, queue_id)
        magic, topic_data = checks.topic(topic)
        properties = encode_properties(message, crc_size, is_inner=inner > 0)
        born_host, host_bits = checks.sender(message.born_host)
        around = record.HEAD_SIZES[host_bits >> 4] + len(topic_data) + _LENGTH_SIZE
        size = around + len(body) + len(properties) + crc_size
        if len(body) > checks.longest_body or size > checks.largest_record:
            checks.sizes(0 if is_again else len(body), size)
        offsets, log = self._offsets, self._log
        queue_offset = 0 if flags & _UNQUEUED_BIT else offsets.next(topic, queue_id)
        self._since = now = self._now()
        head = record.RecordHead(
            magic=magic,
            queue_id=queue_id,
            flag=message.flag,
            queue_offset=queue_offset,
            physical_offset=log.offset_for(size),
            sys_flag=flags,
            born_timestamp=message.born_timestamp or now,
            born_host=born_host,
            store_timestamp=now,
            store_host=checks.store_host,
            reconsume_times=message.reconsume_times,
            prepared_transaction_offset=message.prepared_transaction_offset,
        )
        try:
            parts = record.encode_around(head, body, topic_data, properties, crc_size)
        except FormatError as error:
            raise illegal(str(error)) from None
        self._append(parts, body, crc_size)
        if not flags & _UNQUEUED_BIT:
            offsets.set(topic, queue_id, queue_offset + (inner or 1))
        return PutResult(
            _OK, log.end - size, size, queue_offset, now, inner or 1, store_host=checks.store_host
        )

    def _append(self, parts: AroundBody, body: bytes, crc_size: int) -> None:
        first, head, tail, body_crc, size = parts
        if size >= _LONG:
            # Its body is neither copied nor gone through again.
            if crc_size:
                crc = joined_crc(crc32(head, crc32(first)), body_crc, len(body))
                tail += record_crc.encode(crc32(tail, crc))
            self._log.append_parts(size, first, (head, body, tail))
            return
        rest = b"".join((head, body, tail))
        if crc_size:
            rest += record_crc.encode(crc32(rest, crc32(first)))
        self._log.append_record(size, first, rest)

    def _topic(self, topic: str, queue_id: int) -> TopicPart:
        if self._checks.refusal is not None:
            raise Refusal(PutStatus.SERVICE_NOT_AVAILABLE, self._checks.refusal)
        part = self._checks.topic(topic)
        if queue_id < 0:
            raise illegal(f"queue id {queue_id} is out of range")
        return part


def _answer(error: Exception, what: Message | MessageBatch) -> PutResult:
    if isinstance(error, Refusal):
        return error.result
    if isinstance(error, NextFileError):
        return PutResult(PutStatus.CREATE_MAPPED_FILE_FAILED, reason=str(error))
    if isinstance(error, DiskError):
        return PutResult(PutStatus.UNKNOWN_ERROR, reason=str(error))
    if (reason := wrong_type(what)) is not None:
        return illegal(reason).result
    raise error
