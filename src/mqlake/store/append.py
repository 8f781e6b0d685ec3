"""Append messages to the commit log: checks, queue offsets, records (docs/live-store.md).

Upstream: `DefaultMessageStore.asyncPutMessage`, `CommitLog.asyncPutMessage`, `MessageExtEncoder`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import accumulate
from struct import error as StructError  # noqa: N812

from mqlake.errors import DiskError, FormatError
from mqlake.formats import properties, record, sys_flag
from mqlake.formats.host import V6_SIZE, encode_host
from mqlake.formats.message_batch import decode_batch
from mqlake.storage.clock import Clock
from mqlake.store.append_checks import (
    MOST_BESIDES_BODY,
    Refusal,
    check_size,
    encode_properties,
    encode_topic,
    illegal,
)
from mqlake.store.message import Message, MessageBatch
from mqlake.store.owned_log import OwnedCommitLog
from mqlake.store.put_result import PutResult, PutStatus
from mqlake.store.queue_offsets import QueueOffsets
from mqlake.store.settings import BrokerRole, StoreSettings

_HOST_BITS = sys_flag.BORN_HOST_V6 | sys_flag.STORE_HOST_V6
_PROPERTIES_LENGTH_SIZE = 2
_NO_TIME = -1


class Appender:
    """Put messages at the end of a log.

    What is refused, or fails, changes neither the log nor a queue offset. For one thread, except
    `is_page_cache_busy`.
    """

    def __init__(
        self, log: OwnedCommitLog, offsets: QueueOffsets, settings: StoreSettings, clock: Clock
    ) -> None:
        self._log, self._offsets, self._clock = log, offsets, clock
        self._settings = settings
        self._longest_body = settings.max_message_size
        self._largest = min(log.largest_record, self._longest_body + MOST_BESIDES_BODY)
        self._topic = lru_cache(maxsize=4096)(
            partial(encode_topic, allow_v2=settings.auto_message_version_on_topic_len)
        )
        self._host = lru_cache(maxsize=4096)(encode_host)
        self._store_host = encode_host(_address(settings))
        self._store_bits = sys_flag.STORE_HOST_V6 if len(self._store_host) == V6_SIZE else 0
        self._is_shut_down = False
        self._not_writable: str | None = None
        self._refusal: str | None = None
        self._appending_since = _NO_TIME
        self.set_not_writable(None)

    # State

    def shut_down(self) -> None:
        """Take no more messages."""
        self._is_shut_down = True
        self._update_refusal()

    def set_not_writable(self, reason: str | None) -> None:
        """Take no messages, as the disk is full or has failed; None: take them again."""
        self._not_writable = reason
        self._update_refusal()

    def _update_refusal(self) -> None:
        if self._is_shut_down:
            self._refusal = "the store is shut down"
        elif self._settings.broker_role is BrokerRole.SLAVE:
            self._refusal = "the store is a slave's: put to its master"
        else:
            self._refusal = self._not_writable and f"the store takes none: {self._not_writable}"

    @property
    def is_page_cache_busy(self) -> bool:
        """Say whether an append has been going on for longer than `osPageCacheBusyTimeOutMills`.

        For another thread that is about to wait for this one.
        """
        since = self._appending_since
        most = self._settings.os_page_cache_busy_time_out_mills
        return since != _NO_TIME and self._clock.milliseconds() - since > most

    # Put

    def put(self, message: Message) -> PutResult:
        """Append one message; a refusal or a failure is a result too, never raised."""
        try:
            return self._put(message)
        except Refusal as refusal:
            return refusal.result
        finally:
            self._appending_since = _NO_TIME

    def put_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages of any topics and queues, each as `put` does."""
        return [self.put(message) for message in messages]

    def put_batch(self, batch: MessageBatch) -> PutResult:
        """Append all messages of a batch, one after the other in one file, or none of them."""
        try:
            return self._put_batch(batch)
        except Refusal as refusal:
            return refusal.result
        finally:
            self._appending_since = _NO_TIME

    def _put(self, message: Message) -> PutResult:
        topic = self._check(message.topic, message.queue_id)
        data = encode_properties(message)
        flags, born_host = self._flags_and_host(message.sys_flag, message.born_host)
        body = message.body
        v6 = flags >> 4 & 3
        size = (
            record.HEAD_SIZES[v6]
            + len(body)
            + len(topic.data)
            + _PROPERTIES_LENGTH_SIZE
            + len(data)
        )
        if len(body) > self._longest_body or size > self._largest:
            check_size(
                len(body), size, longest_body=self._longest_body, largest_record=self._largest
            )
        is_queued = sys_flag.is_queued(flags)
        queue = message.topic, message.queue_id
        queue_offset = self._offsets.table.get(queue, 0) if is_queued else 0
        now = self._appending_since = self._clock.milliseconds()
        crc = zlib.crc32(body) & record.CRC_MASK
        log = self._log
        guess = log.end
        while True:
            try:
                head = record.HEADS[v6].pack(
                    size,
                    topic.magic,
                    crc,
                    message.queue_id,
                    message.flag,
                    queue_offset,
                    guess,
                    flags,
                    message.born_timestamp or now,
                    born_host,
                    now,
                    self._store_host,
                    message.reconsume_times,
                    message.prepared_transaction_offset,
                    len(body),
                )
            except StructError as error:
                raise illegal(f"a value does not fit into its field: {error}") from None
            physical_offset = self._make_room(size)
            if physical_offset == guess:
                break
            guess = physical_offset
        log.append(b"".join((head, body, topic.data, len(data).to_bytes(2, "big"), data)))
        if is_queued:
            self._offsets.table[queue] = queue_offset + 1
        return PutResult(
            PutStatus.PUT_OK, physical_offset, size, queue_offset, now, 1, self._store_host
        )

    def _put_batch(self, batch: MessageBatch) -> PutResult:
        topic = self._check(batch.topic, batch.queue_id)
        if batch.sys_flag & (sys_flag.TRANSACTION_MASK | sys_flag.INNER_BATCH):
            raise illegal("a batch can be neither transactional nor an inner batch")
        if properties.DELAY in properties.decode_properties(batch.encoded_properties or b""):
            raise illegal("a batch cannot be delayed")
        body = batch.body
        if len(body) > self._longest_body:
            check_size(len(body), 0, longest_body=self._longest_body, largest_record=self._largest)
        try:
            parts = list(decode_batch(body))
        except FormatError as error:
            raise illegal(str(error)) from None
        if not parts:
            raise illegal("the batch holds no message")
        flags, born_host = self._flags_and_host(batch.sys_flag, batch.born_host)
        v6 = flags >> 4 & 3
        rest = record.HEAD_SIZES[v6] + len(topic.data) + _PROPERTIES_LENGTH_SIZE
        sizes = [rest + part.body_length + part.properties_length for part in parts]
        total = sum(sizes)
        check_size(0, total, longest_body=0, largest_record=self._log.largest_record)
        queue = batch.topic, batch.queue_id
        queue_offset = self._offsets.table.get(queue, 0)
        now = self._appending_since = self._clock.milliseconds()
        log = self._log
        guess = log.end
        while True:
            data = bytearray()
            for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
                content = body[part.body_at : part.body_at + part.body_length]
                try:
                    data += record.HEADS[v6].pack(
                        size,
                        topic.magic,
                        zlib.crc32(content) & record.CRC_MASK,
                        batch.queue_id,
                        part.flag,
                        queue_offset + number,
                        guess + len(data),
                        flags,
                        batch.born_timestamp or now,
                        born_host,
                        now,
                        self._store_host,
                        batch.reconsume_times,
                        0,
                        part.body_length,
                    )
                except StructError as error:
                    raise illegal(f"a value does not fit into its field: {error}") from None
                data += content
                data += topic.data
                data += part.properties_length.to_bytes(2, "big")
                data += body[part.properties_at : part.properties_at + part.properties_length]
            physical_offset = self._make_room(total)
            if physical_offset == guess:
                break
            guess = physical_offset
        log.append(bytes(data))
        self._offsets.table[queue] = queue_offset + len(parts)
        offsets = tuple(accumulate(sizes[:-1], initial=physical_offset))
        return PutResult(
            PutStatus.PUT_OK,
            physical_offset,
            total,
            queue_offset,
            now,
            len(parts),
            self._store_host,
            offsets,
        )

    def _check(self, topic: str, queue_id: int):
        if self._refusal is not None:
            raise Refusal(PutStatus.SERVICE_NOT_AVAILABLE, self._refusal)
        part = self._topic(topic)
        if queue_id < 0:
            raise illegal(f"queue id {queue_id} is below 0")
        if self._appending_since != _NO_TIME and self.is_page_cache_busy:
            raise Refusal(PutStatus.OS_PAGE_CACHE_BUSY, "an earlier append is taking long")
        return part

    def _flags_and_host(self, flags: int, born_host: str) -> tuple[int, bytes]:
        try:
            host = self._host(born_host) if born_host else self._store_host
        except FormatError as error:
            raise illegal(str(error)) from None
        born_bit = sys_flag.BORN_HOST_V6 if len(host) == V6_SIZE else 0
        return flags & ~_HOST_BITS | born_bit | self._store_bits, host

    def _make_room(self, size: int) -> int:
        try:
            return self._log.make_room(size)
        except DiskError as error:
            status = (
                PutStatus.UNKNOWN_ERROR
                if self._log.fitting(size)
                else PutStatus.CREATE_MAPPED_FILE_FAILED
            )
            raise Refusal(status, str(error)) from error


def _address(settings: StoreSettings) -> str:
    address = settings.broker_ip1
    return (
        f"[{address}]:{settings.listen_port}"
        if ":" in address
        else f"{address}:{settings.listen_port}"
    )
