"""Pulls in the lane: a kernel answers those whose decision is known.

The first pull with a header is decided as the ordinary path decides it (`PullDecisions`). Pulls
that have the same header, except for its numbers, need no further check as long as nothing has
changed that the decision depends on. Their messages are read from mapped files; what they commit,
and what is counted, is noted afterwards. All other pulls take the ordinary path.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np

from mqlake.broker.lane import pull_layout as layout
from mqlake.broker.lane.pull_decisions import PullDecisions, decode
from mqlake.broker.lane.pull_kernel import PullKernel, load_pulls
from mqlake.broker.lane.pull_tables import AcceptedPulls, PullTables
from mqlake.broker.lane.pull_texts import text_of_key
from mqlake.broker.lane.topics import MOST_OF_TOPIC
from mqlake.broker.lane.users import routes_taken
from mqlake.broker.pull.requests import PullRequests
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import FormatError, StoreError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.frames import header_at
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.stream.frame_reader import Frames
from mqlake.store.port import MappedView

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes

DATA_SIZE: Final = 1 << 16
ANSWERS_SIZE: Final = 1 << 19
MOST_LEARNED: Final = 128
"""Headers of one connection about which the ordinary path is asked, until something changes."""
_ENOUGH: Final = 16
"""Pulls after which the kernel is loaded: a broker with few needs no lane."""
_TURN: Final = 0.002
"""Seconds after which the kernel's questions are left to the ordinary path."""
_MOST_SEEN: Final = 4096
"""Headers that were seen once since something changed."""
_MOST_QUESTIONS: Final = 16
"""Questions of the kernel without a pull that it serves: answers may displace each other."""

_log = logging.getLogger(__name__)


class LanePulls:
    """Answers usual pulls.

    Attributes:
        tables: what the kernel reads.
        users: the users who have signed requests.
    """

    def __init__(
        self,
        pulls: PullRequests,
        state: BrokerState,
        runtime: BrokerRuntime,
        decisions: PullDecisions,
    ) -> None:
        self._pulls, self._state, self._live = pulls, state, runtime.live
        self._decisions, self._reads = decisions, state.store.reads
        self._mapped = state.store.reads.mapped
        self.users = decisions.users
        self.tables = PullTables(self._mapped.segments, self.users.table)
        self.users.note_permissions(self.tables.permissions)
        self._numbers = self.tables.arrays.state.data
        self._learned: WeakKeyDictionary[Peer, int] = WeakKeyDictionary()
        self._seen: set[int] = set()
        self._data: Bytes = np.zeros(DATA_SIZE, np.uint8)
        self._answers: Bytes = np.zeros(ANSWERS_SIZE, np.uint8)
        self._received = self._data.data
        self._loading: asyncio.Future[PullKernel] | None = None
        self._kernel: PullKernel | None = None
        self._pulled = self._questions = 0
        self._is_stopped = False
        self._left: Peer | None = None

    def routes(self, routes: Iterable[Route]) -> list[Route]:
        """Return the routes; that of pulls passes them to the lane."""
        return routes_taken(routes, (RequestCode.PULL_MESSAGE,), self.take, self._state)

    # Loading and stopping

    def load(self) -> asyncio.Future[PullKernel]:
        """Load the kernel in another thread; until that is done, it serves no pull."""
        if self._loading is None:
            loop = asyncio.get_running_loop()
            arguments = self.tables, self._data, self._answers
            self._loading = loop.run_in_executor(None, load_pulls, *arguments)
        return self._loading

    def _is_loaded(self) -> bool:
        self._pulled += 1
        if self._is_stopped or (self._loading is None and self._pulled < _ENOUGH):
            return False
        loading = self.load()
        if not loading.done():
            return False
        if (failure := loading.exception()) is not None:
            _log.error("pulls take the ordinary path, as a kernel cannot be loaded: %s", failure)
            self.stop()
            return False
        self._kernel = loading.result()
        return True

    @property
    def is_ready(self) -> bool:
        """Return whether pulls may be served: the kernel is loaded, and has not failed."""
        return self._kernel is not None

    def stop(self) -> None:
        """Stop serving pulls."""
        self._is_stopped, self._kernel = True, None
        self._mapped.clear()

    # Bytes that a connection has received

    def take(self, peer: Peer, frames: Frames) -> int:
        """Answer the first of these frames, as many as possible; return how many those were."""
        if self._kernel is None and not self._is_loaded():
            return 0
        if peer is self._left:
            self._left = None
            return 0
        if not self.users.are_silent:
            return 0
        try:
            return self._take(peer, frames)
        except Exception as error:  # noqa: BLE001 (it would fail again and again)
            _log.error("pulls take the ordinary path, as the lane has failed", exc_info=error)
            self.stop()
            return 0

    def _take(self, peer: Peer, frames: Frames) -> int:
        begin, numbers, kernel = perf_counter(), self._numbers, self._kernel
        assert kernel is not None
        at, size = frames.at, min(len(frames.data) - frames.at, DATA_SIZE)
        self._received[:size] = memoryview(frames.data)[at : at + size]
        numbers[layout.POSITION] = numbers[layout.TO] = 0
        numbers[layout.RECEIVED], numbers[layout.SIGNER] = size, 0
        self.renew()
        while True:
            reason = kernel.serve(self._data, self._answers)
            if reason < layout.NEW or perf_counter() - begin >= _TURN:
                break
            # What is learned may displace the decisions of those that are not noted yet.
            if reason == layout.NEW and numbers[layout.NOTES]:
                break
            if not self.ask(reason, peer, frames.data, at + numbers[layout.POSITION]):
                break
        count = numbers[layout.NOTES]
        if count:
            frames.at = at + numbers[layout.POSITION]
            # Before anything can fail: nobody else answers these pulls.
            peer.send(self._answers[: numbers[layout.TO]].tobytes())
            self.apply(perf_counter() - begin)
            if not peer.is_secure:  # Its pulls are served from what its transport has received.
                peer.inlet.note_suitable()
        return count

    def leave_next(self, peer: Peer) -> None:
        """Leave a connection's next frame to the ordinary path: the kernel did not serve it just
        now.
        """
        self._left = peer

    # What the kernel asks for

    def renew(self) -> None:
        """Forget what may have changed; to be called before the kernel is."""
        if self._decisions.have_changed():
            self._forget()
        self.users.renew()
        numbers, mapped, reads = self._numbers, self._mapped, self._reads
        numbers[layout.NOW_GENERATION], numbers[layout.SEGMENTS] = mapped.generation, mapped.count
        numbers[layout.NOW_VERSION], numbers[layout.CONFIRMED] = reads.version, reads.max_offset
        numbers[layout.LOG_START] = mapped.log_start

    def _forget(self) -> None:
        self.tables.clear()
        self._learned.clear()
        self._seen.clear()
        self._mapped.clear()  # A broker that was a slave may have begun its log again.

    def ask(self, reason: int, peer: Peer, data: bytes, at: int) -> bool:
        """Find out what the kernel asks for; return whether it may be called again.

        Args:
            data, at: where the frame of its pull begins.
        """
        self._questions += 1
        if self._questions > _MOST_QUESTIONS:
            self._questions = 0
            return False
        if reason == layout.NEW:
            return self._learn(peer, data, at)
        if reason in (layout.NEW_USER, layout.NEW_PERMISSION):
            return self._ask_about_user(reason, peer)
        try:
            found = self._look() if reason == layout.LOOK else self._map_segment()
        except StoreError:
            return False  # The ordinary path says what is wrong.
        if found:
            self.renew()
        return found

    def _ask_about_user(self, reason: int, peer: Peer) -> bool:
        """Find out who has signed the last request of a connection, or whether this user may make
        the pulls of a decision; return whether so.
        """
        numbers = self._numbers
        if reason == layout.NEW_USER:
            numbers[layout.SIGNER] = self.users.ask(peer)
            return numbers[layout.SIGNER] > 0
        decision = numbers[layout.ASKED]
        accepted = self.tables.accepted[decision]
        assert accepted is not None
        place = self._decisions.place_if_permitted(numbers[layout.SIGNER], accepted)
        if place is not None:
            self.tables.permissions.permit(decision, place)
        return place is not None

    def _map_segment(self) -> bool:
        return self._mapped.map_segment(self._numbers[layout.PHYSICAL])

    def _look(self) -> bool:
        numbers = self._numbers
        row, offset, count = (numbers[n] for n in (layout.QUEUE, layout.OFFSET, layout.COUNT))
        topic, queue_id = self.tables.queues[row]
        confirmed = self._reads.max_offset
        # Its address is that of a file which may be dropped now.
        self.tables.arrays.queues[row] = 0
        view = self._mapped.look(topic, queue_id, offset, count, confirmed)
        if view is not None:
            self._note_view(row, view)
        return view is not None

    def _note_view(self, row: int, view: MappedView) -> None:
        self.tables.arrays.queues[row] = (
            self._mapped.generation,
            self._reads.version,
            view.low,
            view.high,
            view.first,
            view.address,
            view.entries,
            *view.warm,
        )

    def _learn(self, peer: Peer, data: bytes, at: int) -> bool:
        """Ask the ordinary path about pulls with a header; return whether there is an answer."""
        count, kernel = self._learned.get(peer, 0), self._kernel
        if count >= MOST_LEARNED or kernel is None:
            return False
        header, kind = header_at(data, at), data[at + 4]
        size = kernel.read(header, kind)
        if size < 0 or not self._was_seen(size):
            return False
        self._learned[peer] = count + 1
        try:
            text, request = text_of_key(self.tables.arrays.key, size), decode(kind, header)
            if not self._decisions.accept(peer, request):
                return False
            accepted = self._decisions.decide(peer, request, text)
        except FormatError:  # This is reported when the pull is served by itself.
            return False
        if accepted is not None and accepted.queues > MOST_OF_TOPIC:
            accepted = None  # Few such topics would displace all others.
        self.renew()  # The group may have been created just now.
        if not self.tables.has_room(accepted):
            self._forget()
        if not self.tables.has_room(accepted):
            return False
        kernel.enter(size, self.tables.add(accepted))
        self.renew()  # Files may have been dropped.
        return True

    def _was_seen(self, size: int) -> bool:
        """Return whether a pull with the header that was read has come before, since something
        changed. To ask about it takes longer than to serve it: that is not worth it if something
        changes before each pull.
        """
        key = hash(self.tables.arrays.key[: size + layout.KEY_AT].tobytes())
        if key in self._seen:
            return True
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen.add(key)
        return False

    # What was served

    def apply(self, took: float) -> int:
        """Commit the offsets of served pulls, and count them; return how many these are.

        Args:
            took: seconds in which they were served together.
        """
        count, numbers = self._numbers[layout.NOTES], self._numbers
        if not count:
            return 0
        numbers[layout.NOTES] = self._questions = 0
        commit, queues, known = self._pulls.commits.note, self.tables.queues, self.tables.accepted
        totals: dict[int, list[int]] = {}
        notes: list[list[int]] = self.tables.arrays.notes[:count].tolist()
        for decision, row, committed, following, messages, size in notes:
            accepted = known[decision]
            assert accepted is not None
            queue_id = queues[row][1]
            commit(accepted.of, queue_id, committed if accepted.commits else None, following)
            total = totals.get(decision)
            if total is None:
                totals[decision] = [messages, size, 1]
            else:
                total[0] += messages
                total[1] += size
                total[2] += 1
        self._count(totals)
        self._state.stats.get_times.add(took / count, count)
        return count

    def _count(self, totals: dict[int, list[int]]) -> None:
        stats, known = self._state.stats, self.tables.accepted
        for decision, (messages, size, pulls) in totals.items():
            accepted: AcceptedPulls | None = known[decision]
            assert accepted is not None
            stats.got(*accepted.of, messages, size, pulls)
