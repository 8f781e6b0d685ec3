"""One slave of a master: its reports, and the log that is sent to it.

Upstream: `DefaultHAConnection`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from mqlake.errors import FormatError, StoreError
from mqlake.protocol.replication.frames import NOT_COUNTED, ReportReader, encode_head
from mqlake.remoting.memory_budget import MemoryBudget
from mqlake.replication.rate import TransferRate
from mqlake.replication.settings import ReplicationSettings
from mqlake.replication.slave_memory import SlaveMemory
from mqlake.store.live_settings import Current
from mqlake.store.port import Copy, Store

_FAR_BEHIND = 4 << 20
"""If a slave lacks more bytes than this, another thread reads the log for it.

Such a read may wait for the disk, and all others would have to wait, too.
"""
_READ = 1 << 20
"""Bytes that are read so at once, and sent in one frame. RocketMQ's slaves take frames of up to
4 MiB, heads included."""
_SMALL = 64 << 10
"""Bytes that are copied to be sent in one call with their head."""
_AT_ONCE = 128 << 10
_FRAMES_AT_ONCE = 8
"""Bytes and frames that are sent without a wait for the slave, which then has to read them."""

_log = logging.getLogger(__name__)


class EndedError(Exception):
    """The connection is over, for this reason."""


class HaConnection:
    """Sends the log to one slave until the connection ends.

    Args:
        caught_up: called when the slave comes into sync, or falls out of it.
        admit: called with this connection at its first report; returns why it must end, or None.
        budget: of the memory for all connections; None: no maximum.

    Attributes:
        address: the slave's "host:port".
        broker_id: the slave's broker id; only under a controller.
        acknowledged: physical offset before which the slave has the log; -1 before its first
            report.
        transferred_from: physical offset of the first byte of the next frame; -1 before the
            slave's request.
        has_begun: whether it has reported.
    """

    def __init__(
        self,
        settings: Current[ReplicationSettings],
        store: Store,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        address: str,
        *,
        caught_up: Callable[[], object],
        admit: Callable[[HaConnection], str | None],
        budget: MemoryBudget | None = None,
    ) -> None:
        now = settings.now
        self._settings, self._store = settings, store
        self._reader, self._writer, self.address = reader, writer, address
        self._loop = asyncio.get_running_loop()
        self._rate = TransferRate(
            now.max_ha_transfer_byte_in_second if now.ha_flow_control_enable else None
        )
        self._more = asyncio.Event()
        self._is_idle = self._will_send = False
        self._last_write = self._loop.time()
        self._copy: Copy | None = None
        self._is_served = False
        self.acknowledged = self.transferred_from = -1
        self.broker_id: int | None = None
        self._caught_up, self._admit = caught_up, admit
        self.has_begun = False
        self._was_in_sync = False
        self._report_reader = ReportReader()
        self._memory = SlaveMemory(writer.transport, budget, self.close)
        # A frame is written once the one before it has left the buffer, which is used again.
        writer.transport.set_write_buffer_limits(high=0)

    # What `haStatus` shows

    @property
    def transferred_in_second(self) -> int:
        """Bytes that were sent in the last second."""
        return self._rate.of_last_second(self._loop.time())

    @property
    def lacks(self) -> int:
        """Bytes of the log that the slave has not acknowledged."""
        return self._store.copying.end - max(self.acknowledged, 0)

    @property
    def is_counted(self) -> bool:
        """Whether puts may wait for the slave: it is sent the log, and does not only read."""
        return self._copy is not None

    @property
    def is_in_sync(self) -> bool:
        """Whether the slave counts as being in sync."""
        return self.is_counted and self.lacks <= self._settings.now.ha_max_gap_not_in_sync

    # The connection

    def close(self, reason: str) -> None:
        """End the connection, for this reason."""
        _log.warning("slave %s: %s", self.address, reason)
        self._writer.transport.abort()

    def wake(self) -> None:
        """Send what was appended, all that is appended in this round of the loop."""
        if self._is_idle and not self._will_send:
            self._will_send = True
            self._loop.call_soon(self._send_now)

    def _send_now(self) -> None:
        """Send the bytes that a slave lacks which has read the others: producers may wait for them.

        Whatever takes longer is left to the task.
        """
        self._will_send = False
        if not self._is_idle:
            return
        try:
            if self._writer.transport.get_write_buffer_size() == 0:
                self._put_frames()
        except (EndedError, StoreError):
            pass  # The task ends the connection for that reason.
        except BaseException:  # A frame may have been written in part.
            self._writer.transport.abort()
            raise
        if self._is_more:
            self._more.set()

    def _put_frames(self) -> None:
        most, upto = self._settings.now.ha_transfer_batch_size, self.transferred_from + _AT_ONCE
        for _ in range(_FRAMES_AT_ONCE):
            if not self._is_more or self.transferred_from >= upto:
                break
            if self._rate.pause(self._loop.time()):
                break
            self._check_kept()
            self._put_frame(self._store.copying.part(self.transferred_from, most))

    async def run(self) -> str:
        """Serve the slave; return why the connection has ended."""
        tasks: list[asyncio.Task[None]] = []
        try:
            first, *others = await self._reports()
            self._be_admitted()
            self._begin(first)
            self._acknowledge(others)
            tasks = [asyncio.create_task(each) for each in (self._receive(), self._send())]
            done, _ = await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
            done.pop().result()
        except (EndedError, StoreError, FormatError) as error:
            return str(error)
        except OSError as error:
            return error.strerror or str(error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._memory.release()
            self._leave()
        return "it ended"

    def _leave(self) -> None:
        """Stop counting the slave."""
        if self._copy is not None:
            self._store.copies.leave(self._copy)
            self._copy = None

    async def _reports(self) -> list[int]:
        """Return the first and the last of the next reports.

        Raises:
            EndedError: the connection is over.
            FormatError: the bytes are not a report.
        """
        patience = self._settings.now.ha_housekeeping_interval / 1000
        while True:
            try:
                async with asyncio.timeout(patience):
                    data = await self._reader.read(1 << 12)
            except TimeoutError:
                raise EndedError(f"no report for {patience:g} s") from None
            if not data:
                raise EndedError("it closed the connection")
            if offsets := self._offsets(data):
                return offsets

    def _offsets(self, data: bytes) -> list[int]:
        """Return the first and the last report in received bytes.

        Raises:
            FormatError: the bytes are not reports.
        """
        return self._report_reader.feed(data)

    def _head(self, offset: int, size: int) -> bytes:
        """Return the head of a frame with `size` bytes from a physical offset on."""
        return encode_head(offset, size)

    async def _receive(self) -> None:
        while True:
            self._acknowledge(await self._reports())

    def _start_of(self, wanted: int) -> int:
        """Return the physical offset of the first byte to send: 0 requests the last file."""
        return wanted or self._store.copying.last_file

    def _be_admitted(self) -> None:
        """Take a place among the slaves.

        Raises:
            EndedError: all places are taken.
        """
        if (refusal := self._admit(self)) is not None:
            raise EndedError(refusal)
        self.has_begun = True

    def _begin(self, wanted: int) -> None:
        """Begin at the offset that the slave requests; 0 means the start of the last file.

        Raises:
            FormatError: the report is not a request.
        """
        if wanted == NOT_COUNTED:
            raise FormatError("its first report asks for no part of the log")
        copying, watermarks = self._store.copying, self._store.watermarks
        self.acknowledged = wanted
        self.transferred_from = self._start_of(wanted)
        if wanted > copying.end:
            _log.error(
                "slave %s: asks for physical offset %d, and this log ends at %d: its log is another"
                " one; it is sent nothing and not counted",
                self.address,
                wanted,
                copying.end,
            )
            return
        if self.transferred_from < watermarks.min_offset:
            _log.error(
                "slave %s: asks for physical offset %d, and this log begins at %d: it is sent"
                " nothing; start it with an empty store",
                self.address,
                wanted,
                watermarks.min_offset,
            )
            return
        _log.info("slave %s: asks for physical offset %d", self.address, wanted)
        self._is_served = True
        self._copy = self._store.copies.join(wanted, self.broker_id)
        self._note_sync()

    def _acknowledge(self, offsets: Sequence[int]) -> None:
        """Note which part of the log the slave has.

        Raises:
            EndedError: it acknowledges bytes that were not sent to it.
        """
        for offset in offsets:
            if offset == NOT_COUNTED:
                if self._copy is not None:
                    _log.info("slave %s: it only reads, and is not counted", self.address)
                    self._leave()
                    self._note_sync()
                continue
            if offset > self.transferred_from:
                raise EndedError(
                    f"it acknowledges physical offset {offset}, and was sent nothing from"
                    f" {self.transferred_from} on"
                )
            self.acknowledged = max(self.acknowledged, offset)
            if self._copy is not None:
                self._store.copies.acknowledge(self._copy, offset)
                self._note_sync()

    def _note_sync(self) -> None:
        if self._was_in_sync != self.is_in_sync:
            self._was_in_sync = self.is_in_sync
            self._caught_up()

    async def _send(self) -> None:
        while True:
            await self._send_waiting()
            self._more.clear()
            if not self._is_more:
                await self._wait()

    @property
    def _is_more(self) -> bool:
        # A slave whose log differs is sent nothing, however long this log becomes.
        return self._is_served and self.transferred_from < self._store.copying.end

    def _check_kept(self) -> None:
        """Check that retention has not overtaken the slave.

        Raises:
            EndedError: it has. A slave of mqlake reports this when it connects again.
        """
        first = self._store.watermarks.min_offset
        if self.transferred_from < first:
            raise EndedError(
                f"it was sent the log up to physical offset {self.transferred_from} only, and this"
                f" log begins at {first} now; start it with an empty store"
            )

    async def _send_waiting(self) -> None:
        """Send the bytes that the slave lacks.

        Raises:
            EndedError: retention has removed the next bytes.
        """
        copying, most = self._store.copying, self._settings.now.ha_transfer_batch_size
        while self._is_more:
            if pause := self._rate.pause(self._loop.time()):
                await asyncio.sleep(pause)
            self._check_kept()
            offset = self.transferred_from
            if copying.end - offset <= _FAR_BEHIND:
                await self._send_frame(copying.part(offset, most))
                continue
            buffer = self._memory.buffer or memoryview(bytearray(max(_READ, most)))
            self._memory.buffer = buffer
            read = copying.reading(offset, buffer)
            size = await self._loop.run_in_executor(None, read)
            self._check_kept()  # Otherwise the file may have been closed before it was read.
            if not size:
                raise StoreError(f"the log cannot be read at physical offset {offset}")
            await self._send_frame(buffer[:size])
        self._memory.buffer = None
        self._memory.count()

    async def _send_frame(self, data: memoryview) -> None:
        self._put_frame(data)
        await self._writer.drain()
        self._memory.count()
        await asyncio.sleep(0)  # others are served

    def _put_frame(self, data: memoryview) -> None:
        size = len(data)
        head = self._head(self.transferred_from, size)
        # Its acknowledgement may come while the rest waits for the slave to read.
        self.transferred_from += size
        self._last_write = self._loop.time()
        self._rate.add(size, self._last_write)
        if size > _SMALL:
            self._writer.write(head)
            self._writer.write(data)
        else:
            self._writer.write(b"".join((head, data)))
        self._memory.count()

    async def _wait(self) -> None:
        """Return when there may be more to send, or after sending a heartbeat that was due."""
        interval = self._settings.now.ha_send_heartbeat_interval / 1000
        self._is_idle = True
        try:
            async with asyncio.timeout_at(self._last_write + interval):
                await self._more.wait()
        except TimeoutError:
            if self._loop.time() >= self._last_write + interval:
                self._put_frame(memoryview(b""))
                await self._writer.drain()
        finally:
            self._is_idle = False
