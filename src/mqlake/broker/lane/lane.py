"""The lane: reads connections over which sends arrive, and serves the usual ones in a kernel.

A connection joins once a usual send has arrived over it, and leaves as soon as something else is to
be done for it: then its transport reads it again. What the kernel does not know is passed to the
connection, in the order of arrival. The lane remembers nothing but what the ordinary path has
decided before (`SendDecisions`).
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic_ns
from typing import Final

from mqlake.broker.lane import layout
from mqlake.broker.lane.counts import LaneCounts
from mqlake.broker.lane.decisions import SendDecisions
from mqlake.broker.lane.kernel import LaneKernel, load_kernel
from mqlake.broker.lane.seats import Seats
from mqlake.broker.send.send import SendMessages
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.codes import RequestCode
from mqlake.remoting.connection import Peer
from mqlake.remoting.server import RemotingServer

_CODE: Final = int(RequestCode.SEND_MESSAGE_V2)
_BINARY, _JSON = b"\x01", b"\x00"
_BINARY_START: Final = _CODE.to_bytes(2)
_JSON_START: Final = b'{"code":%d,' % _CODE
_ENOUGH: Final = 64
"""Receipts of sends after which the kernel is loaded: a broker with few needs no lane."""
_TURN: Final = 2_000_000
"""Nanoseconds that the lane serves before the loop serves others."""

_log = logging.getLogger(__name__)


class Lane:
    """Serves usual sends. It is a `DirectReader`."""

    def __init__(
        self,
        sends: SendMessages,
        state: BrokerState,
        server: RemotingServer,
        decisions: SendDecisions,
    ) -> None:
        self._sends, self._server, self._decisions = sends, server, decisions
        self._appends, self._clock = state.store.appends, state.store.clock
        self._outside = state.store.appends.outside
        self._counts = LaneCounts(state.stats.put_times, server)
        self._loop = asyncio.get_running_loop()
        self._seats = Seats()
        self._loading: asyncio.Future[LaneKernel] | None = None
        self._kernel: LaneKernel | None = None
        self._receipts = 0
        self._is_watched = self._is_stopped = False

    # DirectReader

    def suits(self, data: bytes) -> bool:
        """Return whether data begins like a send, and the kernel is loaded."""
        kind = data[4:5]
        if kind == _BINARY:
            is_send = data[8:10] == _BINARY_START
        else:
            is_send = kind == _JSON and data.startswith(_JSON_START, 8)
        return is_send and (self._kernel is not None or self._is_loaded())

    def join(self, peer: Peer) -> None:
        """Read a connection from now on, if possible."""
        kernel = self._kernel
        if kernel is None or peer.is_read_directly or not self._is_open():
            return
        if (seat := self._seats.enter(peer)) is None:
            return
        kernel.enter(*seat)
        peer.pause_transport()
        if not self._is_watched:
            self._is_watched = True
            self._loop.add_reader(self._seats.epoll, self._turn)

    def leave(self, peer: Peer) -> None:
        """Stop reading a connection. What is received already is still served."""
        socket, kernel = self._seats.leave(peer), self._kernel
        peer.note_left()
        if socket is None or kernel is None:
            return
        kernel.leave(socket)
        if (
            kernel.numbers[layout.CONNECTION] == socket
            and (data := kernel.take())
            and not peer.is_closed
        ):
            peer.receive(data)

    def last_read(self, peer: Peer) -> float:
        """Return when a connection that is read here was last read."""
        socket = self._seats.socket(peer)
        return 0.0 if socket is None or self._kernel is None else self._kernel.last_read(socket)

    # Loading and stopping

    def load(self) -> asyncio.Future[LaneKernel]:
        """Load the kernel in another thread; until that is done, no connection is read."""
        if self._loading is None:
            usual, topics = self._sends.usual(), self._decisions.topics
            self._loading = self._loop.run_in_executor(None, load_kernel, usual, topics)
        return self._loading

    def _is_loaded(self) -> bool:
        """Load the kernel if it is worth that; return whether it is loaded."""
        self._receipts += 1
        if self._is_stopped or (self._loading is None and self._receipts < _ENOUGH):
            return False
        loading = self.load()
        if not loading.done():
            return False
        if (failure := loading.exception()) is not None:
            _log.error("the lane is not used, because its kernel cannot be loaded: %s", failure)
            self.stop()
            return False
        self._kernel = loading.result()
        self._kernel.numbers[layout.EPOLL] = self._seats.epoll
        return True

    def stop(self) -> None:
        """Read no connection any more."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self.clear()
        if self._is_watched:
            self._loop.remove_reader(self._seats.epoll)
        self._seats.close()

    def clear(self) -> None:
        """Let the transports of all connections read them again."""
        for peer in self._seats:
            peer.read_indirectly()

    def _is_open(self) -> bool:
        """Return whether sends may be served, by the current settings."""
        kernel = self._kernel
        if kernel is None or self._is_stopped:
            return False
        decisions = self._decisions
        if decisions.renew():
            kernel.change(self._sends.usual(), decisions.topics)
        return kernel.is_usable and decisions.are_possible

    # Turns

    def _turn(self) -> None:
        """Serve what has arrived, for a moment. If that fails, the ordinary path serves it all."""
        try:
            self._serve_for_a_moment()
        except Exception as error:  # noqa: BLE001 (it would fail again and again)
            _log.error("the lane is used no more, because it failed", exc_info=error)
            self.stop()

    def _serve_for_a_moment(self) -> None:
        if self._is_stopped:
            return
        # What arrived before over the same connections is put and answered before.
        self._sends.put_waiting()
        self._server.flush()
        until, kernel = monotonic_ns() + _TURN, self._kernel
        assert kernel is not None
        numbers = kernel.numbers
        numbers[layout.UNTIL] = until
        while self._is_open():
            reason = self._serve(kernel)
            if reason == layout.IDLE:
                return
            if reason != layout.LATE:
                self._do(kernel, reason)
                # A send that was passed on comes before those that the kernel serves next, and
                # what was answered before the rest of an answer that the kernel sends in part.
                self._sends.put_waiting()
                self._server.flush()
            if monotonic_ns() >= until:
                if numbers[layout.RECEIVED]:
                    self._loop.call_soon(self._turn)
                return
        self.clear()

    def _serve(self, kernel: LaneKernel) -> int:
        """Call the kernel, and note what it has put."""
        numbers, decisions = kernel.numbers, self._decisions
        array, end, room_end, base = self._outside.log_end()
        decisions.expect(end)
        numbers[layout.END], numbers[layout.ROOM_END], numbers[layout.BASE] = end, room_end, base
        # Not older than that of a record that was put since the last call.
        numbers[layout.STORE_TIME] = self._clock.milliseconds()
        reason = kernel.serve(array)
        if numbers[layout.MESSAGES]:
            # At once: what was answered must not be overwritten.
            end, topics = numbers[layout.END], decisions.topics
            decisions.note_end(end)
            self._appends.note_written(end, topics.take_touched(numbers[layout.TOUCHED]))
            self._counts.add(kernel, self._seats)
            numbers[layout.MESSAGES] = numbers[layout.TOUCHED] = 0
        return reason

    def _do(self, kernel: LaneKernel, reason: int) -> None:
        """Do what the kernel does not know how to do."""
        if reason == layout.NEW_QUEUE:
            self._decisions.ask_offset(kernel.numbers[layout.QUEUE])
            return
        peer = self._seats.peer(kernel.numbers[layout.CONNECTION])
        if peer is None:
            kernel.take()
        elif reason == layout.UNREAD:
            peer.read_indirectly()
        elif reason == layout.NEW_TOPIC and self._decisions.ask_topic(peer, kernel.rest()):
            return
        else:
            self._pass_on(kernel, peer, reason)

    def _pass_on(self, kernel: LaneKernel, peer: Peer, reason: int) -> None:
        """Pass what was received on to its connection."""
        is_first, data = kernel.numbers[layout.POSITION] == 0, kernel.take()
        if reason == layout.UNSENT:
            peer.send_rest(kernel.unsent())
            peer.flush()
        if data:
            peer.receive(data)
        usual = kernel.take_served(kernel.numbers[layout.CONNECTION]) if is_first and data else 1
        may_stay = self._seats.note_other(peer, usual)
        if not may_stay or not peer.may_be_read_directly:
            peer.read_indirectly()
