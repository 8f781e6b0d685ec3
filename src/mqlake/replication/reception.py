"""Connections to a master: received bytes are compared with this log, then appended.

Upstream: `DefaultHAClient`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter

from mqlake.errors import MqlakeError, StoreError
from mqlake.protocol.replication.frames import (
    NOT_COUNTED,
    MasterFrameReader,
    Piece,
    encode_report,
    joined,
)
from mqlake.remoting.tls.client import ClientContexts
from mqlake.remoting.tls.options import ClientTls
from mqlake.replication.comparison import Begin, BeginOtherwiseError, Comparison
from mqlake.replication.connecting import MasterConnection, connect
from mqlake.replication.master_log import MasterLog
from mqlake.replication.rate import TransferRate
from mqlake.replication.settings import ReplicationSettings
from mqlake.store.live_settings import Current
from mqlake.store.port import Store

_TURN = 0.002
"""Seconds after which others are served while received bytes are processed.

They may be many frames of a few bytes.
"""

_log = logging.getLogger(__name__)


class Reception:
    """Receives a master's log into this store, over one connection after another.

    Args:
        is_counted: whether to report to the master how far this copy is, so that it may count on
            it. If not, the master is notified that this is not a copy that counts, as soon as it
            has read the request.
        arrived: called after a part of the log was appended.
        activated: called when the master has begun to send.
        tls: how connections use TLS; None for clear text.

    Attributes:
        is_activated: whether the connection is open, and the master sends.
        last_read, last_write: milliseconds since 1970; 0 before the first.
        master_flush_offset: physical offset up to which the master has sent its log.
        received: bytes of the log that were received.
        rate: counts all bytes that were received.
    """

    _encode_report = staticmethod(encode_report)

    def __init__(
        self,
        settings: Current[ReplicationSettings],
        store: Store,
        *,
        is_counted: bool = True,
        arrived: Callable[[], object] | None = None,
        activated: Callable[[], object] | None = None,
        tls: ClientTls | None = None,
    ) -> None:
        self._settings, self._store, self._is_counted = settings, store, is_counted
        self._loop = asyncio.get_running_loop()
        self.rate = TransferRate()
        self.is_activated = False
        self.last_read = self.last_write = self.master_flush_offset = self.received = 0
        self._arrived, self._activated = arrived, activated
        self._contexts = ClientContexts(tls) if tls is not None else None
        self._compared: Callable[[], Awaitable[object]] | None = None
        self._is_compared = False
        self._begin = Begin.UNKNOWN
        self._frames = MasterFrameReader()
        self._reported = 0
        self._last_report = 0.0
        self._compare_from = store.copying.recovered_from

    async def follow(
        self,
        address: str,
        master: MasterLog | None,
        compared: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Follow a master over one connection.

        Args:
            address: the "host:port" of its port for slaves.
            master: the range of its log, or None if unknown.
            compared: called, and awaited, once what both logs have is compared, and before anything
                is appended.

        Raises:
            DivergedError: its log and this one differ.
            OSError, MqlakeError: the connection cannot be opened, or is over; or it must use TLS,
                and the master does not say that it accepts that.
            BeginOtherwiseError: the log must be requested in another way, which the next call does.
        """
        copying, self._is_compared, self._compared = self._store.copying, False, compared
        copying.drop()
        await copying.kept()
        if self._contexts is not None:
            _check_tls(address, master)
        connection = await connect(address, self._contexts)
        beating: asyncio.Task[None] | None = None
        try:
            comparison = await self._greet(connection, master)
            _log.info("master %s: connected; asked for %d", address, comparison.request)
            self._report(connection, comparison.request)
            beating = asyncio.create_task(self._beat(connection))
            await self._receive(connection, comparison)
        except BeginOtherwiseError as other:
            self._begin = other.begin
            raise
        finally:
            self.is_activated = False
            if beating is not None:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)
            connection.close()

    async def _greet(self, _connection: MasterConnection, master: MasterLog | None) -> Comparison:
        """Return what to ask a master for.

        Raises:
            DivergedError: this log cannot be the master's.
        """
        self._frames = MasterFrameReader()
        return self._comparison(master, self._begin)

    def _comparison(self, master: MasterLog | None, begin: Begin) -> Comparison:
        first = self._store.watermarks.min_offset
        return Comparison(self._store.copying, first, master, self._compare_from, begin)

    async def _receive(self, connection: MasterConnection, comparison: Comparison) -> None:
        while True:
            data = await self._read(connection)
            until = perf_counter() + _TURN
            for arrived in self._pieces(data):
                piece: Piece | None = arrived
                if self._compared is not None and not self._is_compared:
                    piece = await self._compare(arrived, comparison, self._compared)
                if piece is None:
                    continue
                if (waits := self._before(piece, comparison)) is not None:
                    await waits
                self._take(piece, comparison)
                if perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = perf_counter() + _TURN
            if not self._is_counted:
                # The first report counts as a request until it is answered: a second one sent
                # before could be mistaken for it.
                if self._reported != NOT_COUNTED:
                    self._report(connection, NOT_COUNTED)
            elif comparison.is_over:
                await self._acknowledge(connection)

    async def _compare(
        self, piece: Piece, comparison: Comparison, compared: Callable[[], Awaitable[object]]
    ) -> Piece | None:
        """Compare what this log has of a piece; return the rest once everything is compared.

        Raises:
            DivergedError, StoreError, BeginOtherwiseError: as `Comparison.take`.
        """
        if not piece.data:
            comparison.heartbeat(piece.offset)
        elif shared := comparison.shared(piece):
            comparison.take(Piece(piece.offset, piece.data[:shared]))
            if not comparison.is_over:
                return None
            piece = Piece(piece.offset + shared, piece.data[shared:])
        self._is_compared = True
        await compared()
        return piece

    async def _read(self, connection: MasterConnection) -> memoryview:
        """Return what comes next; see `MasterConnection.read`."""
        data = await connection.read(self._settings.now.ha_housekeeping_interval / 1000)
        self.last_read = self._store.clock.milliseconds()
        self.rate.add(len(data), self._loop.time())
        return data

    def _pieces(self, data: memoryview) -> Iterator[Piece]:
        """Yield the pieces of frames in what has arrived; see `MasterFrameReader.feed`."""
        return joined(self._frames.feed(data))

    def _before(self, _piece: Piece, _comparison: Comparison) -> Awaitable[object] | None:
        """Return a job to run before a piece is appended, or None."""
        return None

    def _take(self, piece: Piece, comparison: Comparison) -> None:
        if not piece.data:
            comparison.heartbeat(piece.offset)
            self._activate()
            return
        copying = self._store.copying
        if comparison.is_over:
            if piece.offset != copying.expected:
                raise StoreError(
                    f"the master sends physical offset {piece.offset} instead of {copying.expected}"
                )
            copying.take(piece.data)
        elif new := comparison.take(piece):
            copying.take(new)
        self.master_flush_offset = piece.offset + len(piece.data)
        if comparison.is_over:
            self._compare_from, self._begin = None, Begin.UNKNOWN
            self.received += len(piece.data)
            self._activate()
            if self._arrived is not None:
                self._arrived()

    def _activate(self) -> None:
        if not self.is_activated:
            self.is_activated = True
            _log.info("the master's log is followed, from %d on", self._store.watermarks.end)
            if self._activated is not None:
                self._activated()

    async def _acknowledge(self, connection: MasterConnection) -> None:
        kept = await self._store.copying.kept()
        if kept > self._reported:
            self._report(connection, kept)

    def _report(self, connection: MasterConnection, offset: int) -> None:
        self._reported = offset
        connection.write(self._encode_report(offset))
        self.last_write = self._store.clock.milliseconds()
        self._last_report = self._loop.time()

    async def _beat(self, connection: MasterConnection) -> None:
        """Report again when nothing was reported for some time."""
        interval = self._settings.now.ha_send_heartbeat_interval / 1000
        while True:
            await asyncio.sleep(max(self._last_report + interval - self._loop.time(), 0))
            if self._loop.time() >= self._last_report + interval:
                self._report(connection, self._reported)


def _check_tls(address: str, master: MasterLog | None) -> None:
    """Check that a master accepts TLS at its port for slaves.

    Raises:
        MqlakeError: it does not, or that is not known.
    """
    if master is None:
        raise MqlakeError(
            f"{address}: whether the master accepts TLS for replication is not known, because it"
            " does not answer requests"
        )
    if not master.has_tls:
        raise MqlakeError(
            f"{address}: the master does not accept TLS for replication, as RocketMQ's masters: set"
            " haTlsEnable=false (mqlake replica: --no-ha-tls) to copy its log in clear text"
        )
