"""Append messages with a compiled function, one or many in a call (docs/live-store.md).

msgspec packs the messages of a call at once, which takes a tenth of a microsecond for each. Reading
their fields in Python would take several times as long.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import repeat
from struct import Struct
from weakref import ref

import numpy as np

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.writing import packed_layout as layout
from mqlake.dispatch.writing.puts import PutKernel, load_messages, pack
from mqlake.errors import DiskError
from mqlake.formats import record, record_crc
from mqlake.formats.file_name import MAX_NAME_BYTES
from mqlake.storage.clock import Clock
from mqlake.store.append.checks import AppendChecks, Refusal
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.live_settings import Current
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.settings import StoreSettings

_OK = PutStatus.PUT_OK
_LONGEST = 64 << 10
"""Bytes of a body. A longer one is written without being copied to packed messages."""
_MOST_BESIDES = record.HEAD_SIZES[-1] + 2 + 2 + MAX_NAME_BYTES + 64 + 1 + record_crc.SIZE
"""Bytes of a record in addition to its packed message."""
_SHORT_LIST = 16
"""Messages from which on a packed list begins with three bytes instead of one."""
# Names of this module are found in half the time.
_PACKED_AT, _RECORDS = layout.PACKED_AT, layout.RECORDS
_REASON, _SIZE, _IS_PUBLISHED = layout.REASON, layout.SIZE, layout.IS_PUBLISHED
_QUEUE_OFFSETS = layout.QUEUE_OFFSETS
_WORD, _ROW = Struct(">q"), Struct(">qq")
_UNPACKABLE = (TypeError, ValueError, OverflowError, AttributeError)

PutOne = Callable[[Message], PutResult]


class PackedPuts:
    """Put messages at the end of a log. For one thread."""

    def __init__(
        self,
        log: OwnedCommitLog,
        offsets: QueueOffsets,
        checks: AppendChecks,
        settings: Current[StoreSettings],
        clock: Clock,
    ) -> None:
        self._log, self._offsets, self._now = log, offsets, clock.milliseconds
        self._checks, self._host = checks, checks.store_host
        self._kernel = load_messages()
        self._out = np.zeros(layout.OUT_SIZE, np.int64)
        self._told: memoryview[int] = self._out.data
        self._state: Bytes = np.zeros(layout.STATE_SIZE, np.uint8)
        # A file of the log that was deleted is not held any longer.
        self._array: Callable[[], Bytes | None] = lambda: None
        self._ends: Longs | None = None
        self._write(layout.APPENDS_CRC_AT, checks.appends_crc)
        self._state[layout.SEED_AT :][:8] = np.frombuffer(secrets.token_bytes(8), np.uint8)
        self._write(layout.STORE_SIZE_AT, len(self._host))
        self._put_bytes(layout.STORE_HOST_AT, self._host)
        self._write(layout.LONGEST_BODY_AT, checks.longest_body)
        offsets.on_remove(self._forget)
        # The checks have subscribed before: their caches are cleared by then.
        settings.on_change(self._forget, "max_message_size", "auto_message_version_on_topic_len")

    # What is known of queues and hosts

    def _write(self, at: int, number: int) -> None:
        _WORD.pack_into(self._state.data, at, number)

    def _put_bytes(self, at: int, data: bytes) -> None:
        self._state[at : at + len(data)] = np.frombuffer(data, np.uint8)

    def _forget(self) -> None:
        """Forget what is known."""
        self._write(layout.LONGEST_BODY_AT, self._checks.longest_body)
        for table in (layout.QUEUES, layout.HOSTS):
            begin, end = table.slots_at + layout.COUNT_AT, table.rows_at
            self._state[begin:end] = 0

    def _learn(self, reason: int, message: Message) -> bool:
        """Fill in what the kernel asks for; return whether it may put the message now."""
        if reason == layout.TABLE_FULL:
            self._forget()
            return True
        if reason != layout.NEW_ROW:
            return False
        row = self._told[layout.ROW]
        if row >= layout.HOSTS.rows_at:
            self._learn_host(row, message.born_host)
        else:
            self._learn_queue(row, message.topic, message.queue_id)
        return True

    def _learn_queue(self, row: int, topic: str, queue_id: int) -> None:
        try:
            magic = self._checks.topic(topic).magic
        except Refusal:
            self._write(row + layout.VALUE_AT, layout.UNUSABLE)
            return
        number = self._offsets.number((topic, queue_id))
        _ROW.pack_into(self._state.data, row + layout.VALUE_AT, magic, number)

    def _learn_host(self, row: int, born_host: str) -> None:
        try:
            host = self._checks.sender(born_host).host
        except Refusal:
            self._write(row + layout.VALUE_AT, layout.UNUSABLE)
            return
        self._write(row + layout.VALUE_AT, len(host))
        self._put_bytes(row + layout.MORE_AT, host)

    def _keep(self, kernel: PutKernel) -> None:
        """Let calls write to the last file of the log, and count up the ends of queues."""
        array, ends = self._log.array, self._offsets.ends
        kernel.kept.keep((array, ends, self._state, self._out))
        self._array, self._ends = ref(array), ends

    # Puts

    def put(self, message: Message, delays: int = 0) -> PutResult | None:
        """Append a message; None if nothing was appended: `Appender` puts it, or refuses it.

        Args:
            delays: 1: append it, too, if it may ask for a delay, which does not count then.
        """
        kernel, log = self._kernel, self._log
        if kernel is None or self._checks.refusal is not None:
            return None
        try:
            if len(message.body) > _LONGEST:
                return None
            packed = pack((layout.LEAD, message))
        except _UNPACKABLE:
            return None
        now, end, base, told = self._now(), log.end, log.base, self._told
        at, room_end, address = end - base, log.room_end, kernel.kept.address
        try:
            if self._array() is not log.array or self._ends is not self._offsets.ends:
                self._keep(kernel)
            while not kernel.put_messages(
                address, at, room_end, base, _RECORDS, packed, _PACKED_AT, 1, now, delays
            ):
                if not self._learn(told[_REASON], message):
                    return None
                self._keep(kernel)
            size = told[_SIZE]
            if told[_IS_PUBLISHED] and log.changed is None:
                log.end = end + size
            else:
                self._append(at, size)
        except DiskError:  # Whoever puts it next reports it.
            self._take_back()
            return None
        except BaseException:
            self._take_back()
            raise
        return PutResult(_OK, end, size, told[_QUEUE_OFFSETS], now, 1, store_host=self._host)

    def _append(self, at: int, size: int) -> None:
        """Append the records that the kernel has written.

        Raises:
            DiskError: the disk refused them; the log has not changed.
        """
        log = self._log
        if not self._told[layout.IS_PUBLISHED]:
            begin = layout.RECORDS_AT
            log.append(self._state[begin : begin + size].data)
            return
        if log.changed is not None:
            # In this order, which the kernel keeps: the first record's size comes last.
            log.changed(at + 4, size - 4)
            log.changed(at, 4)
        log.end += size

    def _take_back(self) -> None:
        """Let the ends of queues be what they were before the last call of the kernel, unless its
        records are in the log: a signal may interrupt a put anywhere.
        """
        count = self._told[layout.COUNT]
        if not count or self._told[layout.OFFSETS] != self._log.end:
            return
        numbers = self._out[layout.QUEUE_NUMBERS :][:count]
        offsets = self._out[layout.QUEUE_OFFSETS :][:count]
        is_queued = numbers >= 0
        # Backwards: the first offset of each queue is the one that stays.
        self._offsets.ends[numbers[is_queued][::-1]] = offsets[is_queued][::-1]
        self._told[layout.COUNT] = 0

    def put_many(self, messages: Sequence[Message], put_one: PutOne) -> list[PutResult]:
        """Append messages; those that the kernel leaves go through `put_one`."""
        results: list[PutResult] = []
        while len(results) < len(messages):
            part = messages[len(results) : len(results) + layout.MOST]
            results += self._put_part(part, put_one, results[-1:])
        return results

    def _put_part(
        self, messages: Sequence[Message], put_one: PutOne, last: Sequence[PutResult]
    ) -> list[PutResult]:
        """Args: `last`: the result before."""
        count, results = len(messages), list[PutResult]()
        if self._kernel is None or self._checks.refusal is not None:
            return [put_one(message) for message in messages]
        try:
            packed = pack((layout.LEAD, messages))
        except _UNPACKABLE:
            return [put_one(message) for message in messages]
        at = layout.PACKED_AT + (1 if count < _SHORT_LIST else 3)
        # Store timestamps never decrease: searches by time are binary searches.
        now = max(self._now(), last[0].store_timestamp if last else 0)
        while True:
            results += self._put_run(packed, at, count - len(results), now)
            if len(results) == count:
                return results
            at, message = self._told[layout.POSITION], messages[len(results)]
            if self._learn(self._told[layout.REASON], message):
                continue
            at = self._told[layout.FOLLOWING]
            results.append(put_one(message))
            if len(results) == count:
                return results
            now = max(now, results[-1].store_timestamp)

    def _put_run(self, packed: bytes, at: int, most: int, now: int) -> Iterable[PutResult]:
        """Append messages until one must be left; return their results.

        Args:
            at: the position of the first one in `packed`.
        """
        log, room = self._log, 0
        with suppress(DiskError):  # A message that is put by itself reports what is wrong.
            room = log.room_for(min(len(packed) - at + most * _MOST_BESIDES, layout.RECORDS))
        try:
            count = self._call(packed, at, most, now, room)
            if count:
                self._append(log.position, self._told[layout.SIZE])
        except DiskError:
            self._take_back()
            count = self._call(packed, at, most, now, room=0)
        except BaseException:
            self._take_back()
            raise
        out = self._out
        columns = (
            out[column : column + count].tolist()
            for column in (layout.OFFSETS, layout.SIZES, layout.QUEUE_OFFSETS)
        )
        return map(PutResult, repeat(_OK), *columns, repeat(now), repeat(1), repeat(self._host))

    def _call(self, packed: bytes, at: int, most: int, now: int, room: int) -> int:
        kernel, log = self._kernel, self._log
        assert kernel is not None
        if self._array() is not log.array or self._ends is not self._offsets.ends:
            self._keep(kernel)
        address, position, room_end = kernel.kept.address, log.position, log.room_end
        base = log.base
        return kernel.put_messages(
            address, position, room_end, base, room, packed, at, most, now, 0
        )
