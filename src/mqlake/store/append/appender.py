"""Append messages to the commit log: checks, queue offsets, records (docs/live-store.md).

Upstream: `DefaultMessageStore.asyncPutMessage`, `CommitLog.asyncPutMessage`, `MessageExtEncoder`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812
from zlib import crc32

from mqlake.dispatch.drafts import Drafts
from mqlake.errors import DiskError
from mqlake.formats import record, record_crc, sys_flag
from mqlake.formats.record_crc import BACKWARDS as _CRC_BACKWARDS
from mqlake.storage.clock import Clock
from mqlake.store.append.checks import (
    NO_HOST_BITS,
    AppendChecks,
    Refusal,
    TopicPart,
    encode_properties,
    illegal,
    wrong_type,
)
from mqlake.store.append.inner_batches import InnerBatches
from mqlake.store.append.joined_crc import joined_crc
from mqlake.store.append.many import ManyRecords
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.outside_puts import OutsidePuts
from mqlake.store.append.plain_puts import PlainPuts, QueueRoutes
from mqlake.store.append.plain_runs import PlainRuns
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.append.sent_puts import SentPuts
from mqlake.store.live_settings import Current
from mqlake.store.log.owned_log import NextFileError, OwnedCommitLog
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.settings import StoreSettings

_HEADS = tuple(zip(record.HEADS_BEHIND_SIZE, record.HEAD_SIZES, strict=True))
_SIZE, _LENGTH = Struct(">i"), Struct(">H")
_LENGTH_SIZE = _LENGTH.size
_CRC_MASK = record.CRC_MASK
_OK = PutStatus.PUT_OK
_UNQUEUED_BIT = sys_flag.TRANSACTION_PREPARED & sys_flag.TRANSACTION_ROLLBACK
_NOT_APPENDING = -1
_LONG = 256 << 10
"""Bytes of a record that is written by calls, and whose CRC is put together."""
_FEWEST_AT_ONCE = 8
"""Below this number, messages are put faster one by one."""


class Appender:
    """Put messages at the end of a log.

    A message that is refused, or fails, changes neither the log's end nor a queue offset. That is a
    result, never an exception. For one thread, except `answer_if_busy`.

    Args:
        has_batches: returns whether a topic's queues are batch consume queues.

    Attributes:
        plain, sent: put plain messages, and messages that clients sent, faster.
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
        self._log, self._table, self._now = log, offsets.table, clock.milliseconds
        self._settings = settings
        self._checks = AppendChecks(settings, log.largest_record)
        routes = QueueRoutes(self._checks, settings)
        self.plain = PlainPuts(log, offsets, self._checks, routes, clock)
        self.sent = SentPuts(log, offsets, self._checks, settings, clock)
        self.outside = OutsidePuts(log, offsets, self._checks, settings)
        self._runs = PlainRuns(log, offsets, self._checks, routes)
        self._many = ManyRecords(log, offsets, self._checks)
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
        if (result := self.plain.put(message)) is not None:
            return result
        try:
            return self._put(message, self._checks.crc_size)
        except (Refusal, DiskError, AttributeError, TypeError) as error:
            return _answer(error, message)
        finally:
            self._since = _NOT_APPENDING

    def put_again(self, message: Message) -> PutResult:
        """Append a message that was accepted before, perhaps with a larger `maxMessageSize`."""
        return self._put_again(message, self._checks.crc_size)

    def put_again_without_crc(self, message: Message) -> PutResult:
        """Append a message that leaves no room for the record CRC, as a store without CRCs accepted
        it.

        A message that recovery would consider torn without its CRC is refused.
        """
        properties = message.encoded_properties or b""
        if self._forces_crc or not record_crc.may_be_left_out(properties):
            reason = "the properties leave no room for the record CRC, which recovery requires"
            return PutResult(PutStatus.PROPERTIES_SIZE_EXCEEDED, reason=reason)
        return self._put_again(message, 0)

    def _put_again(self, message: Message, crc_size: int) -> PutResult:
        try:
            return self._put(message, crc_size, is_again=True)
        except (Refusal, DiskError, AttributeError, TypeError) as error:
            return _answer(error, message)
        finally:
            self._since = _NOT_APPENDING

    def put_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages of any topics and queues, each as `put` would."""
        if len(messages) < _FEWEST_AT_ONCE or self._checks.refusal is not None:
            return [self.put(message) for message in messages]
        results = self.put_runs(messages)
        if len(results) == len(messages):
            return results
        self._since = now = max(self._now(), results[-1].store_timestamp if results else 0)
        try:
            return results + self._many.put(messages[len(results) :], now, self.put)
        finally:
            self._since = _NOT_APPENDING

    def put_runs(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append the first of these messages, as `put_many` does, as long as they are plain and in
        runs of one queue; return their results.

        These ask for no delay.
        """
        if len(messages) < _FEWEST_AT_ONCE or self._checks.refusal is not None:
            return []
        self._since = self._now()
        try:
            return self._runs.put(messages, self._since)
        finally:
            self._since = _NOT_APPENDING

    def put_drafts(
        self,
        drafts: Drafts,
        topic: str,
        queue_ids: Sequence[int],
        born_host: str,
        *,
        whole: bool = False,
    ) -> int:
        """Append encoded messages; return how many, from the first on.

        The others are to be put by `put`, which reports what is wrong with them.

        Args:
            drafts: all of one topic and of host 0; none is delayed, or part of a transaction. The
                rows that were put contain their positions.
            queue_ids: the ids of the drafts' queues.
            whole: put all of them in one file, or none.
        """
        if self._checks.refusal is not None:
            return 0
        self._since = self._now()
        try:
            return self._many.put_drafts(
                drafts, topic, queue_ids, born_host, self._since, whole=whole
            )
        except (Refusal, DiskError):
            return 0
        finally:
            self._since = _NOT_APPENDING

    def put_batch(self, batch: MessageBatch) -> PutResult:
        """Append all messages of a batch consecutively in one file, or none of them."""
        try:
            topic = self._topic(batch.topic, batch.queue_id)
            self._since = self._now()
            if batch.is_inner:
                return self._put_inner(batch)
            return self._many.put_batch(batch, topic, self._since)
        except (Refusal, DiskError, AttributeError, TypeError) as error:
            return _answer(error, batch)
        finally:
            self._since = _NOT_APPENDING

    def _put_inner(self, batch: MessageBatch) -> PutResult:
        count = self._inner.check(batch)
        queue_offset = self._table.get((batch.topic, batch.queue_id), 0)
        message = self._inner.message(batch, count, queue_offset)
        return self._put(message, self._checks.crc_size, inner=count)

    def _put(
        self, message: Message, crc_size: int, *, is_again: bool = False, inner: int = 0
    ) -> PutResult:
        """Args: `inner`: the number of messages of an inner batch; 0 for a message that is not
        one.
        """
        checks, body, flags = self._checks, message.body, message.sys_flag
        queue = topic, queue_id = message.topic, message.queue_id
        if checks.refusal is not None or queue_id < 0:
            self._topic(topic, queue_id)
        magic, topic_data = checks.topic(topic)
        properties = encode_properties(message, crc_size, is_inner=inner > 0)
        length = len(properties) + crc_size
        born_host, host_bits = checks.sender(message.born_host)
        head, head_size = _HEADS[host_bits >> 4]
        size = head_size + len(body) + len(topic_data) + _LENGTH_SIZE + length
        if len(body) > checks.longest_body or size > checks.largest_record:
            checks.sizes(0 if is_again else len(body), size)
        table, log = self._table, self._log
        queue_offset = 0 if flags & _UNQUEUED_BIT else table.get(queue, 0)
        self._since = now = self._now()
        body_crc = crc32(body)
        try:
            record_head = head.pack(
                magic,
                body_crc & _CRC_MASK,
                queue_id,
                message.flag,
                queue_offset,
                log.offset_for(size),
                flags & NO_HOST_BITS | host_bits,
                message.born_timestamp or now,
                born_host,
                now,
                checks.store_host,
                message.reconsume_times,
                message.prepared_transaction_offset,
                len(body),
            )
        except StructError as error:
            raise illegal(f"a value does not fit into its field: {error}") from None
        first, tail = _SIZE.pack(size), b"".join((topic_data, _LENGTH.pack(length), properties))
        if size >= _LONG:
            # Its body is neither copied nor gone through again.
            if crc_size:
                crc = joined_crc(crc32(record_head, crc32(first)), body_crc, len(body))
                tail += (_CRC_BACKWARDS % (crc32(tail, crc) & _CRC_MASK))[::-1]
            log.append_parts(size, first, (record_head, body, tail))
        else:
            rest = b"".join((record_head, body, tail))
            if crc_size:
                rest += (_CRC_BACKWARDS % (crc32(rest, crc32(first)) & _CRC_MASK))[::-1]
            log.append_record(size, first, rest)
        if not flags & _UNQUEUED_BIT:
            table[queue] = queue_offset + (inner or 1)
        return PutResult(
            _OK, log.end - size, size, queue_offset, now, inner or 1, store_host=checks.store_host
        )

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
