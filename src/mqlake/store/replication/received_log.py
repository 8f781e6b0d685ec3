"""Append the bytes of another store's log unchanged, as a slave does.

Upstream: `DefaultMessageStore.appendToCommitLog`, which appends whatever arrives. Here only whole
records are appended: a process crash leaves no half record, whose properties could look complete
because they are zero.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from mqlake.dispatch.answers import Walk
from mqlake.dispatch.batch import Window
from mqlake.dispatch.kernel import load
from mqlake.dispatch.verdict import MORE
from mqlake.dispatch.window import SLACK, Buffers
from mqlake.errors import StoreError
from mqlake.formats import record
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.store.log.owned_log import OwnedCommitLog

_FIRST_WINDOW = 1 << 20
_LONG = 64 << 10
"""Bytes that arrive at once, and are appended from where they are: the rest is copied first."""
_Append = Callable[[memoryview], object]
_SIZE = 4
"""Bytes of the size field with which a record begins."""

_log = logging.getLogger(__name__)


class ReceivedLog:
    """Receives the bytes of another store's log from this log's end on. For one thread.

    Attributes:
        damaged: number of records that were appended although the checksum of their body is
            wrong: they are so in the other store.
        last_stored: store time (ms) of the newest received record; 0 before the first.
    """

    def __init__(self, log: OwnedCommitLog) -> None:
        self._log, self._kernel = log, load()
        self._buffers: Buffers | None = None
        self._held = 0
        self._padding = 0
        self.damaged = self.last_stored = 0

    @property
    def expected(self) -> int:
        """Physical offset of the next byte to receive: after what is appended, or held."""
        return self._log.end + self._held + self._padding

    def drop(self) -> None:
        """Drop the bytes of an incomplete record; they must be sent again."""
        self._held = self._padding = 0
        self._buffers = None

    def take(self, data: bytes | memoryview) -> None:
        """Append the records that these bytes complete, and hold the rest.

        Raises:
            StoreError: no record of a store with files of this size can begin like this.
            DiskError: the disk is full. After either error, drop all that is held.
        """
        view = memoryview(data)
        append: _Append = self._log.append_by_call if len(view) >= _LONG else self._log.append
        if self._padding:
            view = view[self._pad(view) :]
        while len(view):
            if not self._held and (appended := self._append_in_place(view)):
                view = view[appended:]
                continue
            buffers = self._room(len(view))
            part = view[: self._wanted(buffers, len(view))]
            buffers.data.data[self._held : self._held + len(part)] = part
            self._held += len(part)
            view = view[len(part) :]
            self._append_whole(buffers, append)
            if self._padding:
                view = view[self._pad(view) :]

    def _append_in_place(self, view: memoryview) -> int:
        """Append the whole records at the start of many bytes; return how many bytes these are.

        Whatever is unusual about the first record is left to the buffer.
        """
        # The kernels are compiled for arrays that can be written.
        if len(view) < _LONG or view.readonly:
            return 0
        log, buffers = self._log, self._own_buffers()
        left, length = log.file_end - log.end, min(len(view) - SLACK, buffers.window)
        window = Window(np.frombuffer(view, np.uint8), log.end, length, left, left)
        walk = self._kernel.walk(window, 0, length, buffers.records, check_crc=True)
        if walk.at:
            self._append_walked(view[: walk.at], walk, left, log.append_by_call)
        return walk.at

    def _append_walked(self, records: memoryview, walk: Walk, left: int, append: _Append) -> None:
        self._check_room(walk.at, left)
        self._note_damaged(walk.damaged)
        append(records)
        stored = self._own_buffers().records["store_timestamp"]
        self.last_stored = int(stored[walk.rows - 1])

    def _wanted(self, buffers: Buffers, more: int) -> int:
        """Return how many of the next bytes to copy: all that fit, or the rest of one record."""
        held, room = self._held, buffers.window - self._held
        if not held or more < _LONG:
            return room
        if held < _SIZE:
            return _SIZE - held
        missing = int.from_bytes(buffers.data[:_SIZE], "big") - held
        return missing if 0 < missing < room else room

    def _own_buffers(self) -> Buffers:
        if self._buffers is None:
            self._buffers = Buffers(_FIRST_WINDOW)
        return self._buffers

    def _room(self, more: int) -> Buffers:
        buffers = self._own_buffers()
        if self._held == buffers.window:
            # One record fills it: double the buffer, so that held bytes are not copied too often.
            held = buffers.data[: self._held].copy()
            buffers.grow(min(2 * self._held, self._held + max(more, _FIRST_WINDOW)))
            buffers.data[: self._held] = held
        return buffers

    def _append_whole(self, buffers: Buffers, append: _Append) -> None:
        log, kernel, data = self._log, self._kernel, buffers.data
        at = 0
        while at < self._held:
            left = log.file_end - log.end
            window = Window(data[at:], log.end, self._held - at, left, left)
            walk = kernel.walk(window, 0, window.length, buffers.records, check_crc=True)
            if walk.at:
                self._append_walked(data.data[at : at + walk.at], walk, left, append)
                at += walk.at
            elif walk.verdict == Fault.TOPIC:
                size = self._odd_record(data.data[at : self._held])
                self._check_room(size, left)
                append(data.data[at : at + size])
                at += size
            elif walk.verdict == Fault.BLANK:
                self._begin_padding(data.data[at : at + record.FRAME_SIZE], left)
                at += record.FRAME_SIZE
                if self._padding:
                    rest = data.data[at : self._held]
                    at += self._pad(rest)
            elif walk.verdict == MORE or (walk.verdict == Fault.SHORT and left > self._held - at):
                break
            else:
                raise StoreError(self._refusal(walk.verdict, left))
        if at:
            data[: self._held - at] = data[at : self._held].copy()
            self._held -= at

    def _odd_record(self, data: memoryview) -> int:
        """Return the size of a record without a valid queue; it is copied nevertheless."""
        _, layout = record.check(data, 0, len(data), self._log.end, crc=False)
        if layout is None:
            raise StoreError(self._refusal(Fault.LENGTHS, 0))
        return layout.size

    def _check_room(self, size: int, left: int) -> None:
        """Refuse records that leave no room for the file's blank record: the log would roll."""
        if size > left - record.FRAME_SIZE:
            raise StoreError(self._refusal(Fault.SIZE, left))

    def _note_damaged(self, damaged: int) -> None:
        if damaged:
            self.damaged += damaged
            _log.error(
                "the master sends %d records whose body has a wrong checksum, near physical"
                " offset %d: they are copied unchanged",
                damaged,
                self._log.end,
            )

    def _begin_padding(self, head: memoryview, left: int) -> None:
        """Begin the rest of a file after its last record."""
        size = int.from_bytes(head[:_SIZE], "big")
        if size != left:
            raise StoreError(self._refusal(Fault.BLANK, left))
        self._blank_head = bytes(head)
        self._padding = record.FRAME_SIZE
        self._end_file_if_complete()

    def _pad(self, data: memoryview) -> int:
        """Write bytes that follow a blank record's head; return how many bytes that were."""
        log = self._log
        part = data[: log.file_end - log.end - self._padding]
        log.write_padding(self._padding, part)
        self._padding += len(part)
        self._end_file_if_complete()
        return len(part)

    def _end_file_if_complete(self) -> None:
        if self._padding == self._log.file_end - self._log.end:
            self._log.append_blank(self._blank_head)
            self._padding = 0

    def _refusal(self, verdict: int, left: int) -> str:
        where = f"the master's log at physical offset {self._log.end}"
        if verdict in (Fault.BLANK, Fault.SIZE, Fault.SHORT):
            return (
                f"{where}: a record does not fit in the {left} bytes that are left of this file:"
                f" set mappedFileSizeCommitLog on this slave to its master's value; here it is"
                f" {self._log.files.size}"
            )
        return f"{where}: {FAULT_REASONS[Fault(verdict)]}"
