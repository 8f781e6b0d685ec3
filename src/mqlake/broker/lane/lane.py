"""The lane: serves usual sends and pulls in a kernel.

Of most connections, it receives them itself: a connection joins once a usual one has arrived over
it, and leaves as soon as something else is to be done for it; then its transport reads it again.
What the kernel does not know is passed to the connection, in the order of arrival. Of others, it
serves what their transports have received. The lane remembers nothing but what the ordinary path
has decided before (`SendDecisions`, `PullDecisions`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from time import monotonic_ns
from typing import Final

from mqlake.broker.lane import layout
from mqlake.broker.lane.counts import LaneCounts
from mqlake.broker.lane.decisions import SendDecisions
from mqlake.broker.lane.kernel import LaneKernel, load_kernel
from mqlake.broker.lane.pull_turns import PullTurns
from mqlake.broker.lane.pulls import LanePulls
from mqlake.broker.lane.seats import Decryption, Seats, host_of
from mqlake.broker.lane.users import routes_taken
from mqlake.broker.lane.withheld import WithheldAnswers
from mqlake.broker.send.send import SendMessages
from mqlake.broker.state.broker_state import BrokerState
from mqlake.dispatch.batch import Bytes, Longs
from mqlake.formats.host import V4_SIZE
from mqlake.protocol.codes import RequestCode
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer
from mqlake.remoting.stream.frame_reader import Frames

CODES: Final = frozenset({int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.SEND_BATCH_MESSAGE)})
"""The request codes of sends that the kernel knows."""
_CODE: Final = int(RequestCode.SEND_MESSAGE_V2)
_ENOUGH: Final = 64
"""Receipts of sends after which the kernel is loaded: a broker with few needs no lane."""
_TURN: Final = 2_000_000
"""Nanoseconds that the lane serves before the loop serves others."""
_SHORT_TURN: Final = 1_000_000
"""Nanoseconds that it serves what a transport has received."""
_PATIENCE: Final = 1.0
"""Seconds after which a frame that is not complete is passed to its connection."""
_ANY: Final = 1 << 62

_log = logging.getLogger(__name__)


class Lane:
    """Serves usual sends and pulls. It is a `DirectReader`.

    `open` is to be called before anything else but `routes`.
    """

    def __init__(
        self, sends: SendMessages, state: BrokerState, decisions: SendDecisions, pulls: LanePulls
    ) -> None:
        self._sends, self._state, self._decisions = sends, state, decisions
        self._lane_pulls = pulls
        self._appends, self._clock = state.store.appends, state.store.clock
        self._outside, self._unconfirmed = state.store.appends.outside, sends.unconfirmed
        self._loop = asyncio.get_running_loop()
        self._seats = Seats()
        self._decryption = Decryption(decisions, self._seats.peer)
        self._loading: asyncio.Future[LaneKernel] | None = None
        self._kernel: LaneKernel | None = None
        self._receipts = 0
        self._taken: Peer | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_watched = self._is_stopped = False

    def routes(self, routes: Iterable[Route]) -> list[Route]:
        """Return the routes; those of usual requests pass them to the lane."""
        return routes_taken(routes, CODES, self.take, self._state)

    def open(self, server: RemotingServer) -> None:
        """Serve the connections of a server, which has started."""
        self._server = server
        self._counts = LaneCounts(self._state.stats.put_times, server)
        self._pulls = PullTurns(self._lane_pulls, server, self._seats.peer)
        self._withheld = WithheldAnswers(self._state, server, self._unconfirmed)
        server.read_directly(self)

    # DirectReader

    def join(self, peer: Peer) -> None:
        """Read a connection from now on, if possible."""
        if self._kernel is None and not self._is_loaded():  # As long as only pulls arrive.
            return
        kernel = self._kernel
        if kernel is None or peer.inlet.is_read_directly or not self._is_open():
            return
        if peer.inlet.unfinished > layout.LONGEST_FRAME:
            return
        if peer.inlet.unfinished and not kernel.may_keep_rest(host_of(peer.address)):
            return
        if (seat := self._seats.enter(peer)) is None:
            return
        kernel.enter(*seat, peer.inlet.take_unfinished(), is_encrypted=peer.is_secure)
        self._note_rests(kernel)
        peer.inlet.note_joined()
        if not self._is_watched:
            self._is_watched = True
            self._loop.add_reader(self._seats.epoll, self._turn)

    def leave(self, peer: Peer) -> None:
        """Stop reading a connection. What is received already is still served."""
        socket, kernel = self._seats.leave(peer), self._kernel
        peer.inlet.note_left()
        if socket is None or kernel is None:
            return
        if (data := kernel.leave(socket)) and not peer.is_closed:
            peer.inlet.receive(data)

    def last_read(self, peer: Peer) -> float:
        """Return when a connection that is read here was last read."""
        socket = self._seats.socket(peer)
        return 0.0 if socket is None or self._kernel is None else self._kernel.last_read(socket)

    # Loading and stopping

    def load(self) -> asyncio.Future[LaneKernel]:
        """Load the kernel in another thread; until that is done, the lane serves nothing."""
        if self._loading is None:
            topics, users = self._decisions.topics, self._decisions.users.table
            pulls, known = self._lane_pulls.tables.arrays, users.arrays(topics.permissions)
            arguments = self._sends.usual(), topics, pulls, known, self._decisions.lite_seed
            self._loading = self._loop.run_in_executor(None, load_kernel, *arguments)
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
        """Stop serving."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._is_watched:
            self._loop.remove_reader(self._seats.epoll)
        self._seats.close()

    def clear(self) -> None:
        """Let the transports of all connections read them again."""
        for peer in self._seats:
            peer.inlet.read_indirectly()

    def _is_open(self) -> bool:
        """Return whether sends may be served, by the current settings."""
        kernel = self._kernel
        if kernel is None or self._is_stopped:
            return False
        decisions = self._decisions
        if decisions.renew():
            kernel.change(self._sends.usual())
        return kernel.is_usable and decisions.are_possible

    # Received by transports

    def take(self, peer: Peer, frames: Frames) -> int:
        """Serve the first of these frames, as many as are usual, and count them.

        Returns:
            0: no frame is to be counted elsewhere.
        """
        if self._kernel is None and not self._is_loaded():
            return 0
        host = host_of(peer.address)
        if len(host) != V4_SIZE or not self._is_open():
            return 0
        # What arrived before over the same connection is put and answered before.
        self._sends.put_waiting()
        begin, kernel = frames.at, self._kernel
        assert kernel is not None
        kernel.note_signer(layout.BYTES, 0)
        kernel.numbers[layout.UNTIL] = until = monotonic_ns() + _SHORT_TURN
        self._taken = peer
        try:
            while self._serve_bytes(kernel, peer, host, frames):
                # The first frame is served, however long it took to answer the kernel's questions.
                if frames.at > begin and monotonic_ns() >= until:
                    break
        except Exception:  # It would fail again and again, for each connection.
            _log.error("the lane is used no more, because it failed")
            self.stop()
            raise
        finally:
            self._taken = None
        if frames.at > begin:
            peer.inlet.note_suitable()
        return 0

    def _serve_bytes(self, kernel: LaneKernel, peer: Peer, host: bytes, frames: Frames) -> bool:
        """Call the kernel for received frames; return whether it may serve more of them."""
        begin = frames.at
        appended_to = *self._prepare(kernel), self._decisions.next_offsets
        data = frames.data[begin : begin + layout.DATA_SIZE]
        reason, size = kernel.serve_bytes(*appended_to, data, host)
        frames.at += size
        self._note(kernel)
        if reason == layout.SERVED_ALL:
            return size > 0 and begin + len(data) < len(frames.data)
        return reason == layout.FULL or self._ask(kernel, peer, reason, frames)

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
        self._pulls.begin()
        while self._is_open():
            numbers[layout.UNTIL] = until
            reason = self._serve(kernel)
            if reason == layout.IDLE:
                break
            if reason not in (layout.LATE, layout.FULL):
                self._do(kernel, reason)
                # A send that was passed on comes before those that the kernel serves next, and
                # what was answered before the rest of an answer that the kernel sends in part.
                self._sends.put_waiting()
                self._server.flush()
            if monotonic_ns() >= until:
                if numbers[layout.RECEIVED]:
                    self._loop.call_soon(self._turn)
                break
        else:
            self.clear()
        self._note_rests(kernel)

    def _serve(self, kernel: LaneKernel) -> int:
        """Call the kernel, and note what it has served."""
        self._pulls.prepare()
        try:
            reason = self._decryption.serve(kernel, *self._prepare(kernel))
            # If answers were withheld, there may be more connections to serve.
            if reason == layout.IDLE and kernel.numbers[layout.WITHHELD]:
                reason = layout.FULL
            elif reason == layout.UNSENT:
                self._send_rest(kernel)
        finally:
            try:
                self._pulls.note()
            finally:
                self._note(kernel)
        self._decryption.end()
        return reason

    def _send_rest(self, kernel: LaneKernel) -> None:
        """Let a connection send the rest of an answer, before anything can make it leave."""
        if (peer := self._seats.peer(kernel.numbers[layout.CONNECTION])) is not None:
            peer.send_rest(kernel.unsent())

    def _prepare(self, kernel: LaneKernel) -> tuple[Bytes, Longs]:
        """Prepare a call of the kernel; return the log's file and the next offsets of queues."""
        numbers, decisions = kernel.numbers, self._decisions
        array, end, room_end, base, ends = self._outside.log_end()
        numbers[layout.END], numbers[layout.ROOM_END], numbers[layout.BASE] = end, room_end, base
        # Not older than that of a record that was put since the last call.
        numbers[layout.STORE_TIME] = self._clock.milliseconds()
        numbers[layout.WITHHOLDS] = must_wait = decisions.must_wait
        numbers[layout.MAY_PUT] = self._unconfirmed.room if must_wait else _ANY
        return array, ends

    def _note(self, kernel: LaneKernel) -> None:
        """Note what the kernel has put, and answer what it has not answered."""
        numbers = kernel.numbers
        if not numbers[layout.MESSAGES]:
            return
        # At once: what was answered must not be overwritten.
        self._appends.note_written(numbers[layout.END])
        if numbers[layout.WITHHOLDS]:
            self._withheld.take(kernel, self._peer, self._sends.usual().answers.failed)
            return
        self._counts.add(kernel, self._peer)
        sealed = kernel.sealed() if numbers[layout.WITHHELD] else ()
        kernel.note_taken()
        for connection, answers in sealed:
            if (peer := self._peer(connection)) is not None:
                peer.send_at_once(answers)

    def _peer(self, connection: int) -> Peer | None:
        """Return the connection with a number."""
        return self._taken if connection == layout.BYTES else self._seats.peer(connection)

    def _do(self, kernel: LaneKernel, reason: int) -> None:
        """Do what the kernel does not know how to do."""
        if reason == layout.FIRST_PULL and self._pulls.expect():
            return
        peer = self._seats.peer(kernel.numbers[layout.CONNECTION])
        if peer is None:
            kernel.take()
        elif reason == layout.UNREAD:
            peer.inlet.read_indirectly()
        elif not self._ask(kernel, peer, reason):
            self._pass_on(kernel, peer, reason)

    def _ask(
        self, kernel: LaneKernel, peer: Peer, reason: int, frames: Frames | None = None
    ) -> bool:
        """Find out what the kernel does not know about a frame; return whether it can serve it.

        Args:
            frames: what a transport has received, from that frame on; None if the kernel has it.
        """
        decisions = self._decisions
        if reason == layout.OTHER:
            return self._outside.make_room()
        if reason == layout.NEW_QUEUE:
            decisions.ask_place(kernel.numbers[layout.QUEUE])
            return True
        if reason == layout.NEW_TOPIC:
            if frames is None:
                return decisions.ask_topic(peer, Frames(kernel.rest(), 0, _CODE))
            return decisions.ask_topic(peer, Frames(frames.data, frames.at, frames.code))
        if reason == layout.NEW_LITE:
            return decisions.ask_lite(kernel, peer)
        if reason in (layout.NEW_USER, layout.NEW_PERMISSION):
            connection = kernel.numbers[layout.CONNECTION] if frames is None else layout.BYTES
            return decisions.find_out(kernel, peer, reason, connection)
        return frames is None and reason == layout.PULL and self._pulls.ask(peer, kernel.rest())

    def _pass_on(self, kernel: LaneKernel, peer: Peer, reason: int) -> None:
        """Pass what was received on to its connection."""
        is_first = kernel.numbers[layout.POSITION] == 0
        data = kernel.take() if reason == layout.UNSENT else kernel.take_whole()
        if reason == layout.UNSENT:
            peer.flush()
        if data:
            # Whoever signs a request among these is the last one who has signed one.
            kernel.note_signer(kernel.numbers[layout.CONNECTION], 0)
            peer.inlet.receive(data)
        usual = kernel.take_served(kernel.numbers[layout.CONNECTION]) if is_first and data else 1
        may_stay = self._seats.note_other(peer, usual)
        if not may_stay or not peer.inlet.may_be_read_directly:
            peer.inlet.read_indirectly()

    # Incomplete frames

    def _note_rests(self, kernel: LaneKernel) -> None:
        """Let the memory budget and the sweep know of rests."""
        kernel.rests.count_in(self._server.budget)
        if len(kernel.rests) and self._sweeper is None and not self._is_stopped:
            self._sweeper = self._loop.call_later(_PATIENCE, self._sweep)

    def _sweep(self) -> None:
        """Look for frames that stay incomplete, as long as there are incomplete ones."""
        self._sweeper, kernel = None, self._kernel
        assert kernel is not None
        self._pass_on_old(kernel, _PATIENCE)
        self._note_rests(kernel)

    def _pass_on_old(self, kernel: LaneKernel, age: float) -> None:
        """Pass frames that began so many seconds ago to their connections."""
        for socket in kernel.rests.old(monotonic_ns() - int(age * 1e9)):
            if (peer := self._seats.peer(socket)) is not None:
                peer.inlet.read_indirectly()
